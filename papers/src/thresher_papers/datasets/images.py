"""MNIST and CIFAR-10: rows of bytes, as they were published."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher_papers.datasets.files import Files, loader
from thresher_papers.datasets.formats import arrays, cifar, idx
from thresher_papers.datasets.real_set import RealSet

__all__ = ["cifar10", "mnist"]

BATCHES = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


@loader
def mnist(here: Files) -> RealSet:
    """60,000 and 10,000 digits of 28 x 28 bytes."""
    kinds = [f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    if files := here.all_of(*kinds):
        X, y, X_test, y_test = (idx(file) for file in files)
        X, X_test = (images.reshape(len(images), -1) for images in (X, X_test))
    elif files := here.all_of("mnist.npz"):
        data = arrays(files[0])
        X, y, X_test, y_test = (data[name] for name in ("X_train", "y_train", "X_test", "y_test"))
    elif here.download:
        from sklearn.datasets import fetch_openml

        found = fetch_openml("mnist_784", version=1, as_frame=False, parser="liac-arff")
        images, digits = found.data.astype(np.uint8), found.target.astype(np.uint8)
        X, y, X_test, y_test = images[:60_000], digits[:60_000], images[60_000:], digits[60_000:]
    else:
        raise here.missing(fetched=True)
    about = "MNIST: handwritten digits, 28 x 28 bytes a row"
    return RealSet(here.name, X, y, X_test, y_test, _bytes(X), about)


@loader
def cifar10(here: Files) -> RealSet:
    """50,000 and 10,000 images of 32 x 32 pixels; X.reshape(-1, 3, 32, 32) has the planes red, green and blue."""
    if files := here.all_of(*(f"cifar-10-batches-bin/{name}" for name in BATCHES)) or here.all_of(*BATCHES):
        batches = [cifar(file) for file in files]
        X, y = (np.concatenate(parts) for parts in zip(*batches[:-1], strict=True))
        X_test, y_test = batches[-1]
    elif files := here.all_of("cifar10_subset.npz"):
        data = arrays(files[0])
        X, X_test = (_planes(data[name]) for name in ("X_train", "X_test"))
        y, y_test = data["y_train"], data["y_test"]
    else:
        raise here.missing()
    about = f"CIFAR-10: {', '.join(CLASSES)}; planes of 32 x 32 bytes, red, green and blue"
    return RealSet(here.name, X, y, X_test, y_test, _bytes(X), about)


def _planes(images: Any) -> Any:
    return images.transpose(0, 3, 1, 2).reshape(len(images), -1)


def _bytes(X: Any) -> dict[str, Any]:
    """No byte exceeds 255."""
    return {"feature_bound": 255.0, "row_bound": 255.0 * X.shape[1] ** 0.5, "classes": range(10)}
