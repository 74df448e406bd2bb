"""Cabin voice: a small Mixture-of-Experts model that turns spoken commands into one JSON line."""
