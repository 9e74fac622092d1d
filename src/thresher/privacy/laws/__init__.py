"""The laws of noise and reports that are not plain: their densities, their prices, how they are checked."""
