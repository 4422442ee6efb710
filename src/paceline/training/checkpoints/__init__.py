"""Checkpoints: each parameter server writes its own part, while training continues.

Begin with `checkpoints`: when a checkpoint is written, and which one is restored. `savers` writes and
`restores` reads the parts; `checksums` and `checkpoint_folders` say which checkpoint is whole. A checkpoint
holds each table whole and in its own order, so any number of servers can read it.
"""
