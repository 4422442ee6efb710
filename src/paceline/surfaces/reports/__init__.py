"""A run as one page for people: numbers, plots and what they say, in a file that needs nothing else.

``pages`` joins the rest: ``series`` puts measurements on a common time grid, ``plots``, ``bars`` and
``timelines`` draw them in the style of ``drawings`` and say in a sentence what is to be seen; ``whys`` adds
why the job is as it is, with ``heat_maps``, ``traffics`` and ``splits`` that show it, also as a page of its
own. Needs the extra ``report`` (Matplotlib and Jinja2); only the verbs that write pages import this package.
"""
