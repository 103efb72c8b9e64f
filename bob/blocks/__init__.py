"""What the blocks of a recording are: each write named from the on-disk format of its file system.

Pure: a base image and a :class:`~bob.trace.model.Trace` in, one name per write out.

- ``naming``: ``names()``, the way in
- ``medium``: the device as it is at some write, without a copy of the whole
- ``owners``: which file a block belongs to, as the trace goes on
- ``parts``, ``summary``: what is in a write, and how that is said in one short line
- ``data``: file data of a workload, recognised by its pattern
- ``items``: the items of a tree in key order, to tell what a leaf changes (btrfs, reiserfs)
- ``ext``, ``ext_geometry``, ``ext_blocks``, ``ext_maps``, ``ext_directories``, ``jbd2``: ext2, ext3, ext4
- ``xfs``, ``xfs_geometry``, ``xfs_blocks``, ``xfs_log``: xfs, version 5
- ``btrfs``, ``btrfs_tree``: btrfs on one device
- ``reiserfs``, ``reiserfs_journal``, ``reiserfs_tree``: reiserfs, format 3.5 and 3.6
- ``f2fs``: f2fs
- ``other``: what can be said of any other file system
- ``*_format``: the structures of each, declared: what the bytes are, not what they mean
"""
