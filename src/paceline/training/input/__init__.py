"""Batches of examples, from files to the graph.

Begin with `sources`: files by URL or pattern, in one of three formats (`csv_files`, `parquet_files`,
`record_files`), each of which knows the line or record of every row. `columns` makes numbers and words of
what is read. `inputs` reads ahead in threads; `shards` and `shared_queues` divide the examples among the
trainers. No graph is built here but for the queue's two small variables.
"""
