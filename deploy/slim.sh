#!/bin/sh
# slim.sh VENV: takes out of a virtual environment what the operator and the server never load: a third of its size.
# modules.py then loads what they do load, so a package that needs more than is left fails the build.
set -eu
cd "$1"/lib/python3*/site-packages
find . -name tests -type d -prune -exec rm -rf {} +
# Arrow: other services' protocols, C++ headers, copies for compilers. Recordings are Parquet files.
rm -rf pyarrow/include pyarrow/src pyarrow/*flight* pyarrow/*arrow_s3* pyarrow/_s3fs* pyarrow/libarrow_python.so pyarrow/libarrow_python.so.*.*.*
find pyarrow -name '*.p[xy][dix]' -delete
strip --strip-unneeded pyarrow/*.so pyarrow/*.so.*
# Of the descriptions of 400 services of AWS, those of S3 and of logging in.
for each in botocore/data/*/; do
  case $(basename "$each") in s3 | sts | sso | sso-oidc | signin) ;; *) rm -rf "$each" ;; esac
done
# Modules are compiled by loading them: those that are never loaded would take as much again.
env -u PYTHONDONTWRITEBYTECODE "$1/bin/python3" "$OLDPWD/modules.py"
