"""Figures, each measured in one run on one machine: ratios travel, absolute times do not."""
