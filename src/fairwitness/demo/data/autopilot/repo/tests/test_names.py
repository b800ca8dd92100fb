"""A name has one spelling."""

import unittest

from larder.names import tidy


class Names(unittest.TestCase):
    def test_letters_and_spaces_do_not_matter(self) -> None:
        self.assertEqual([tidy("  Brown   Rice"), tidy("oats")], ["brown rice", "oats"])
