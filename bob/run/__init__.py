"""All that starts guests.

option_table   the options that several commands or both front ends have; option_values   which values they take
requests       requests, made of what was asked by the command line or from Python
guest_images   the images that options ask for
model_change   what a change of a model means for a program
agents         a guest with bob's agent in it
pool           guests side by side, what they do, and what it means to lose one
pipeline       recordings and observations, by guests side by side
prober         a probe from end to end; trial: a quick question; matrix: a set of configurations; search: lots of
               workloads; programs: a program
parts          a run in parts, and who does them; program_parts: those of a program
parcels        what a worker of a cluster gets, and gives back; parcel_process: what does one there
cluster        Dask: parts handed out, done again where a worker is lost, and taken back
recoveries     crashes during recovery
replay         a witness shown again; export: its log, for xfstests' replay-log
shrink         makes witnesses smaller
witness_image  which guest image a witness needs
interrupts     Ctrl-C, and that no guest is left
"""
