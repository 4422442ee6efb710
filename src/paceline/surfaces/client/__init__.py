"""The client of a server (`surfaces.web`), whose jobs are used like those of a home or a namespace.

``connections`` sends requests, ``refusals`` turns refusals into errors, ``readings`` turns documents into
values; the verbs and the Python API use `server_jobs.ServerJobs`::

    with connections.opened(url, token=token) as connection:
        jobs = ServerJobs(connection, folder, shares_files=False)
        run = jobs.submit(spec, source=source, base=base)
"""
