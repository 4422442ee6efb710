"""Batches of examples, from files to the graph.

Begin with `sources`: files by URL or pattern, in one of three formats (`csv_files`, `parquet_files`,
`record_files`), each of which knows the line or record of every row. `columns` decodes what is read to
numbers and words. `inputs` reads ahead in threads; `shards` and `shared_queues` divide the examples among the
trainers. The only part of a graph that is built here is the queue of shards.
"""
