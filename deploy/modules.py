"""Load what the operator, the server and the fetcher of code load, so that the image has it compiled."""

import importlib

for name in (
    "paceline.surfaces.cli.main",
    "paceline.surfaces.cli.verbs.operator",
    "paceline.surfaces.cli.verbs.serve",
    "paceline.surfaces.operator",
    "paceline.surfaces.web.servers",
    "paceline.services.studying.proposals",
    "paceline.services.studying.predictions",
    "paceline.stores.recordings",
    "paceline.stores.postgresql",
    "paceline.agent.bring",
    "paceline.agent.fetch",
    "psycopg",
    "pyarrow.parquet",
    "s3fs",
):
    importlib.import_module(name)
