"""Runs: everything that starts guests. These are the modules, from the options of a command to its results:

option_table, option_paths, option_values    the options that several commands share, and their values
requests, guest_images         requests and guest images, made from options
agents, pool, pipeline         one guest with bob's agent; several guests side by side; the recordings and
                               observations that they make
prober, matrix, search         a probe or a question about one workload; a set of configurations; a search, which runs
                               workloads in batches ("lots")
programs                       a program under test
parts, program_parts           a run divided into parts, and a program's run divided into parts
cluster, parcels, parcel_process    parts of a run on the workers of a Dask cluster, with their files
recoveries, model_change       crashes during recovery; the vulnerabilities of a program by a model and a changed model
replay, export, shrink         a witness shown again, exported as a log, or made smaller
witness_image                  the guest images for witnesses
interrupts                     Ctrl-C, and the end of all guests
"""
