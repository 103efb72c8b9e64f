"""Tests of the stories of crashes."""
