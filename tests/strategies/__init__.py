"""Hypothesis strategies by subject: at least one for each public class.

Windows, gaps and lateness are a few seconds and rows are in the same minute, so that they interact. Everything drawn is valid:
its checks pass.
"""
