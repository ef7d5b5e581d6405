"""The picture of `./dev bench time` shows every figure, and only those."""

import re
import unittest
import xml.etree.ElementTree

from tests.bench import time_page

LINES = {"thimble, swap": [(1.0, 1.0), (0.8, 1.5), (0.5, 40.0)], "unified": [(1.0, 1.0)]}


class TimePage(unittest.TestCase):

    def points(self, lines):
        drawing = xml.etree.ElementTree.fromstring(time_page.chart(lines))
        return [(float(circle.get("cx")), float(circle.get("cy")))
                for circle in drawing.iter("circle")]

    def test_every_figure_is_a_point(self):
        points = self.points(LINES)
        self.assertEqual(len(points), 4)
        for x, y in points:
            self.assertTrue(time_page.LEFT <= x <= time_page.WIDTH - time_page.LEFT, x)
            self.assertTrue(time_page.TOP <= y <= time_page.HEIGHT - time_page.TOP, y)

    def test_less_memory_is_further_right_and_longer_steps_are_higher(self):
        points = self.points(LINES)[:3]
        self.assertEqual(points, sorted(points))
        self.assertEqual([y for _, y in points], sorted((y for _, y in points), reverse=True))

    def test_equal_factors_have_equal_heights(self):
        y = [y for _, y in self.points({"a": [(1.0, 2.0), (0.9, 4.0), (0.8, 8.0)]})]
        self.assertAlmostEqual(y[0] - y[1], y[1] - y[2], delta=0.2)

    def test_names_are_text(self):
        page = time_page.page("<title>", {"<b>": LINES, "none": {}})
        self.assertNotIn("<b>", page)
        self.assertIn("No run with less memory reached its end", page)
        self.assertEqual(len(re.findall("<svg", page)), 1)


if __name__ == "__main__":
    unittest.main()
