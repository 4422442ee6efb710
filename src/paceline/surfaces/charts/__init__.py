"""Charts as values, which templates draw as inline SVG: the same for pages, reports and benchmarks.

``scales`` say where values stand on an axis, ``drawings`` put lines, areas, boxes, dots and words between two
scales, ``curves`` are values with their intervals, ``bars`` are rows of stacked bars in a table, ``strips``
are small charts in a row of a table, ``steps`` shows what a step moves and where its time goes.
``charts.html``, ``bars.html`` and ``steps.html`` draw them; ``files`` writes a chart as a file of its own. No
chart has a colour or a style in it: its classes stand in ``charts.css``, colours in ``colours.css``.
"""
