"""The commands of bob, each with a line of help, in the order of `bob --help`."""

COMMANDS = {
    "probe": "Find out which persistence properties a file system has.",
    "try": "Check what you expect of a few operations after a crash.",
    "app": "Find out whether a program survives a crash: its checker judges each crash state.",
    "cluster": "Find out whether a replicated service survives a crash of all its nodes.",
    "search": "Search for workloads where a crash loses something durable.",
    "matrix": "Probe a set of configurations, and print one table.",
    "judge": "Judge a run again from its files, without a guest.",
    "show": "Print the results of a run again, or write them as a document.",
    "compare": "Compare two runs, or a run and the published table, cell by cell.",
    "merge": "Merge runs, such as the shards of one, into one run.",
    "reproduce": "Repeat a published experiment, and print its results beside the published ones.",
    "witness": "Explain, shrink or export a witness of a violation.",
    "replay": "Replay a witness on a real kernel, to confirm that it violates its property.",
    "apm": "Derive and check models of what applications can rely on.",
    "runs": "List and remove run directories.",
    "image": "List, build and remove guest images.",
    "trace": "Inspect a block log of dm-log-writes, or explore the crash states of QEMU's.",
    "doctor": "Check everything that a probe needs.",
    "site": "Build a static site with the documentation and the results.",
    "man": "Write the manual pages.",
}
