"""A run as one page for people: numbers, plots and what they say, in a file that needs nothing else.

``pages`` joins the rest: ``series`` puts measurements on a common time grid, ``plots``, ``loads`` and
``timelines`` make figures of them from the parts in ``surfaces.charts``; ``captions`` say in a sentence what
is to be seen. ``whys`` adds why the job is as it is, also as a page of its own, with ``heat_maps``. Templates
need the extra ``report`` (Jinja2).
"""
