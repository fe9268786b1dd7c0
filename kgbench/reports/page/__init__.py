"""A run as one HTML file that opens offline: ``kgbench report RUN --html FILE``. docs/page.md describes it.

``source.py`` says what a page is made from, ``overview.py`` and ``detail.py`` make data of it, ``charts.py`` holds the
charts as Vega-Lite specifications, ``document.py`` puts data, script and style into a file, ``ranking.py`` writes
leaderboards. What the reader's browser does with it is ``assets/``. No figure is computed here that ``scores`` and
its like compute.
"""
