"""Runs: everything that starts guests.

option_table, option_paths, option_values    the options of several commands or both front ends, and their values
requests, guest_images         requests and images, made of options
agents, pool, pipeline         guests with an agent; guests side by side; recordings and observations side by side
prober, matrix, search         a probe or a quick question from end to end; a set of configurations; lots of workloads
programs                       a program
parts, program_parts           a run in parts, and those of a program
cluster, parcels, parcel_process    parts on the workers of a Dask cluster, with their files
recoveries, model_change       crashes during recovery; the effect of another model on a program
replay, export, shrink         witnesses: shown again, exported as a log, made smaller; witness_image: their images
interrupts                     Ctrl-C, and the end of all guests"""
