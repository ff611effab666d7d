"""Shuffle a sorted file once before training; a shuffle buffer keeps its order.

A streamed dataset cannot jump to a random item, so it shuffles with a buffer. The first items of
the file fill the buffer. Then the shuffle takes a random item out of the buffer, and puts the next
item of the file in the free place. `IterableDataset.shuffle(buffer_size=1000)` of Hugging Face,
WebDataset and tf.data work like this, and so does the `shuffle` of torch's DataPipes.

The shuffle cannot give out an item before the file has been read up to this item. So an item can
move forward by at most the size of the buffer, and the epoch follows the order of the file. If the
file is sorted by class, date or source, the items of a batch come from neighbouring parts of the
file. The net then learns the classes one after another, and forgets the early classes. A new seed
in each epoch does not change this. A buffer for the whole file shuffles completely, but each worker
then needs memory for the whole file.

A dataset that is split into many files (shards) is better. The order of the shards can be drawn at
random, because each shard can be opened at any time. The buffer then mixes the shards that it
covers. So a random order helps if the buffer covers many shards. If each shard holds one class and
is as large as the buffer, a random order helps little.

The lesson has 10,000 items of 10 classes. The chart shows how many different classes each batch
has.

In practice: shuffle the data once before you write the shards. Write small shards, so that the
buffer covers ten shards or more, and draw a new order of the shards in each epoch. Before training,
look at the labels of the first batches.
## Predict
A file has 10 classes of 1000 items each, and is sorted by class. The shuffle buffer has 1000
places. How many different classes does a batch of 64 items have on average?
## Look for
- [every] with a shuffle buffer, each item of the file comes exactly once in an epoch
- [early] with a shuffle buffer of n places, the first 100 items of an epoch are among the first n +
  100 items of the file
- [first-batch] from a file sorted by class, with a shuffle buffer of 1000, the first batch of 64
  items has at most 2 of 10 classes
- [per-batch] from a file sorted by class, with a shuffle buffer of 1000, batches of 64 items
  average 3.5 to 5.5 of 10 classes
- [order] with a shuffle buffer of 1000, the correlation of the place in the file and the place in
  the epoch is at least 0.9
- [epochs] from a file sorted by class, the first batch of each of three epochs with different seeds
  has at most 2 of 10 classes
- [torch] from a file sorted by class, the Shuffler of torch.utils.data with a buffer of 1000 gives
  3.5 to 5.5 classes a batch
- [whole] with a buffer for the whole file, batches average at least 9.8 classes; places in file and
  epoch correlate by at most 0.05
- [shards] with 100 shards of 100 items in random order and a buffer of 1000, a batch has at least 9
  of 10 classes on average
- [few-shards] with 10 shards of one class each in random order and a buffer of 1000, a batch has at
  most 5.5 classes on average
- [learns] after an epoch, a net has at least 20 points more accuracy with a buffer for the whole
  file than with 1000 places
## Try next
`--file shuffled`: the file was shuffled before it was written, so a small buffer does no harm.
refutes: first-batch, per-batch, epochs, torch, few-shards, learns
`--buffer 10000`: the buffer holds the whole file, so it shuffles completely. refutes: first-batch,
per-batch, order, epochs, torch, few-shards, learns
## Source
- Documentation of TorchData, `Shuffler`,
  https://docs.pytorch.org/data/0.4/generated/torchdata.datapipes.iter.Shuffler.html: to shuffle
  completely, the buffer has to be as large as the data.
- Ours: the classes of a batch, the shards, and the accuracy.
"""

import random
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data.datapipes.iter import IterableWrapper, Shuffler

from tuilab import Lab

ITEMS = 10_000
CLASSES = 10
BATCH = 64


def shuffle_with_buffer(items, size, seed=0):
    """Yield the items in the order of a shuffle buffer."""
    generator = random.Random(seed)
    buffer = []
    for item in items:
        if len(buffer) < size:
            buffer.append(item)
            continue
        place = generator.randrange(size)
        yield buffer[place]
        buffer[place] = item
    generator.shuffle(buffer)
    yield from buffer


def shuffle_with_torch(items, size):
    shuffler = Shuffler(IterableWrapper(items), buffer_size=size)
    return list(shuffler.set_seed(0))


def shuffle_shards(shards):
    """Return all places of the file, with its shards in random order."""
    length = ITEMS // shards
    order = list(range(shards))
    random.Random(0).shuffle(order)
    places = []
    for shard in order:
        places += range(shard * length, (shard + 1) * length)
    return places


def make_labels(file):
    """Return the class of each place of the file."""
    labels = torch.arange(ITEMS) // (ITEMS // CLASSES)
    if file == "shuffled":
        labels = labels[torch.randperm(ITEMS)]
    return labels  # (10000,)


def count_classes(order, labels):
    """Return how many classes each batch has."""
    counts = []
    for places in torch.tensor(order).split(BATCH):
        counts.append(len(labels[places].unique()))
    return counts


def mean(numbers):
    return sum(numbers) / len(numbers)


def correlate_places(order):
    """Return the correlation of the place in the file and the place in the epoch."""
    places = torch.stack([torch.arange(ITEMS), torch.tensor(order)])
    return torch.corrcoef(places.double())[0, 1].item()


def claim_order(lab, orders, labels, size):
    lab.axes("classes", x="batch", y="classes of the batch")
    counts = {}
    for arm, order in orders.items():
        lab.stage(arm)
        counts[arm] = count_classes(order, labels)
        for batch, count in enumerate(counts[arm]):
            lab.log(batch + 1, arm=arm, classes=count)
    means = {arm: mean(counts[arm]) for arm in orders}
    lab.bars("classes of a batch on average", means)

    buffered = orders["buffer"]
    lab.claim("every", sorted(buffered) == list(range(ITEMS)))
    lab.claim("early", max(buffered[:100]) + 1 - size, at_most=100)
    lab.claim("first-batch", counts["buffer"][0], at_most=2)
    lab.claim("per-batch", means["buffer"], between=(3.5, 5.5), answers=True)
    lab.claim("order", correlate_places(buffered), at_least=0.9)
    lab.claim("torch", means["Shuffler of torch"], between=(3.5, 5.5))
    correlation = abs(correlate_places(orders["whole file"]))
    is_whole = [means["whole file"] >= 9.8, correlation <= 0.05]
    lab.claim("whole", is_whole, equals=[True, True])
    lab.claim("shards", means["100 shards"], at_least=9)
    lab.claim("few-shards", means["10 shards"], at_most=5.5)


def claim_epochs(lab, labels, size):
    lab.stage("three epochs")
    first_counts = []
    for epoch in range(3):
        order = list(shuffle_with_buffer(range(ITEMS), size, seed=epoch))
        first_counts.append(count_classes(order[:BATCH], labels)[0])
    lab.claim("epochs", max(first_counts), at_most=2)


def draw_points(centers, labels):  # (10, 16), (items,) -> (items, 16)
    return centers[labels] + torch.randn(len(labels), centers.shape[1])


def train(lab, arm, x, labels, order, test_x, test_labels):
    """Train a small net for one epoch in this order; return its accuracy in percent."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    lab.stage(f"training, {arm}")
    for batch, places in enumerate(torch.tensor(order).split(BATCH)):
        loss = F.cross_entropy(net(x[places]), labels[places])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            is_right = net(test_x).argmax(1) == test_labels
        accuracy = 100 * is_right.double().mean().item()
        lab.log(batch + 1, arm=arm, accuracy_percent=accuracy)
    return accuracy


def claim_training(lab, orders, labels):
    lab.axes("accuracy_percent", x="batch", y="accuracy on all classes")
    centers = torch.randn(CLASSES, 16)
    x = draw_points(centers, labels)
    test_labels = torch.arange(2000) % CLASSES
    test_x = draw_points(centers, test_labels)
    accuracies = {}
    for arm in ("buffer", "whole file"):
        accuracies[arm] = train(lab, arm, x, labels, orders[arm], test_x, test_labels)
    gain = accuracies["whole file"] - accuracies["buffer"]
    lab.claim("learns", gain, at_least=20, unit="points")


def run(
    lab: Lab,
    buffer: int = 1000,  # places of the shuffle buffer, 1..10000
    file: Literal["sorted", "shuffled"] = "sorted",  # the order of the classes in the file
) -> None:
    labels = make_labels(file)
    orders = {
        "buffer": list(shuffle_with_buffer(range(ITEMS), buffer)),
        "Shuffler of torch": shuffle_with_torch(range(ITEMS), buffer),
        "whole file": list(shuffle_with_buffer(range(ITEMS), ITEMS)),
        "100 shards": list(shuffle_with_buffer(shuffle_shards(100), buffer)),
        "10 shards": list(shuffle_with_buffer(shuffle_shards(10), buffer)),
    }
    claim_order(lab, orders, labels, buffer)
    claim_epochs(lab, labels, buffer)
    claim_training(lab, orders, labels)
