"""Reports on a run: a single, self-contained HTML page with numbers, plots and captions.

``pages`` combines the other modules. ``series`` puts measurements on a common time grid. ``plots``, ``loads``
and ``timelines`` make figures of them with ``surfaces.charts``, and ``captions`` describe each figure in a
sentence. ``whys`` adds the explanation of the job, with ``heat_maps``; it can also be a page of its own.
Templates need the extra ``report`` (Jinja2).
"""
