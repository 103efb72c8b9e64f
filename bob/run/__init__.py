"""Everything that starts guests: the only room, beside the command line, that knows how they are had.

option_table   the options that several commands or both front ends have; option_values   which values they take
requests       requests, made of what was asked by the command line or from Python
guest_images   the images that options ask for
model_change   what a change of a model means for a program
agents         a guest with bob's agent in it
pool           guests side by side, what they do, and what it means to lose one
tasks          what is to be done, and what came of it; pipeline: guests side by side do it
prober         a probe from end to end; matrix: a set of configurations, one after the other
trial          a quick question from end to end
parts          a run in parts, and who does them; columns: those of a matrix; lots: of a search; program_parts: of a
               program
parcels        what a worker of a cluster is given, and gives back; parcel_process: what does one there
cluster        Dask: parts handed out, done again where a worker is lost, and taken back
recoveries     crashes during recovery
replay         a witness shown again; export: its log, for xfstests' replay-log
shrink         makes witnesses smaller
witness_image  which guest image a witness needs
interrupts     Ctrl-C, and that no guest is left
"""
