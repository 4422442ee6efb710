"""What was found in a job, a file or a machine: causes and findings, with evidence and next steps.

Begin with `causes.Explanation`, the answer of ``paceline why``. `findings` has the findings of checks, and
`checkups` those of ``paceline doctor``; `conclusions` and `diagnosis_summaries` are what is kept of them. How
causes and findings are found is not known here: see `diagnosing` and `linting`.
"""
