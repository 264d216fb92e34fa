"""Hypothesis strategies by subject: at least one for each public class.

Windows, gaps and lateness are of a few seconds and rows are of the same minute, so that they meet. Whatever is drawn
is valid: its checks pass.
"""
