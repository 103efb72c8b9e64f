"""Runs: everything that starts guests. These are the modules, from the options of a command to its results:

option_table, option_paths, option_values    the options that several commands share, and their values
requests, guest_images         requests and guest images, made from options
agents, pool, pipeline         one guest with bob's agent; several guests side by side; the recordings and
                               observations that they make
prober, matrix, search         an experiment on one file system ("probe"), or the user's question about one workload;
                               a probe of each configuration in a set; a search, which runs workloads in batches
                               ("lots")
programs                       a program under test
parts, program_parts           a run divided into parts, and a program's run divided into parts
dask_workers, parcels, parcel_process    parts of a run on the workers of a Dask cluster, with their files
recoveries, model_change       crashes during recovery; a program's vulnerabilities on models of file systems, and those
                               on only one of two models
replay, export, shrink         a witness (a file about one crash state) shown again, exported as a log, or made smaller
witness_image                  the guest images for witnesses
interrupts                     Ctrl-C, and the end of all guests
"""
