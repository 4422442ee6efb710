"""Charts as values, which templates draw as inline SVG; pages, reports and benchmarks share them.

``scales`` place values on an axis. ``drawings`` place lines, areas, boxes, dots and words between two scales.
``curves`` are values with their intervals, ``bars`` are rows of stacked bars in a table, ``strips`` are small
charts in the rows of a table, and ``steps`` shows the traffic and the time of a training step.
``charts.html``, ``bars.html`` and ``steps.html`` draw them; ``files`` writes a chart as a file of its own.
Charts contain no colours or styles: their classes are defined in ``charts.css``, the colours in
``colours.css``.
"""
