"""Checkpoints: each parameter server writes its own part, while training continues.

Begin with `checkpoints`: when one is written, and which is restored. `savers` writes and `restores` reads
the parts; `checksums` and `checkpoint_folders` say which checkpoint is whole. A checkpoint holds tables
whole and in their own order, so any number of servers can read it.
"""
