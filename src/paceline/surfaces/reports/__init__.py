"""A run as one page for people: numbers, plots and what they say, in a file that needs nothing else.

``pages`` joins the rest: ``series`` puts measurements on a common time grid, ``plots``, ``bars`` and
``timelines`` draw them in the style of ``drawings`` and say in a sentence what is to be seen. Needs the
extra ``report`` (Matplotlib and Jinja2); nothing else imports this package.
"""
