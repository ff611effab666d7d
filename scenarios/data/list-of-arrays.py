"""Stack numpy arrays before you make a tensor: torch.tensor reads a list slowly.

After loading a few images, or collecting observations of an environment, you have a list of numpy
arrays. `torch.tensor(arrays)` gives the right tensor, but slowly. It treats the list and each array
as Python sequences. It asks the list for its arrays, each array for its rows, and each row for its
numbers. Every number becomes a Python object, is converted, and is thrown away.

`np.stack` copies each array as one block of memory, and `torch.from_numpy` makes a tensor of the
result without a copy. `torch.as_tensor` also takes a single array without a copy, but it reads a
list as slowly as `torch.tensor`. PyTorch warns about a list once in a process, so the warning is
easily lost at the start of a log. The default collate function of a DataLoader is not slow: it
makes a tensor of each array, and stacks the tensors. So look for the slow call in your own code,
such as a collate function or a replay buffer.

Two details depend on the form. The first is the dtype. numpy makes float64 by default, and a list
of float64 arrays gives a float64 tensor. The same numbers as Python floats give float32. The second
is memory. A tensor of `from_numpy` shares its memory with the array: if you fill the array again,
the tensor changes. After `np.stack` this does no harm, because nothing else uses the new array.

The gain depends on the size of an array. The chart shows the time for images of 1 to 64 pixels a
side. If each array has only a few numbers, the calls themselves take most of the time, and the
forms differ less.

In practice: write `torch.from_numpy(np.stack(arrays))`, and add `.float()` if the arrays are
float64. Run your script once with `python -W "error:Creating a tensor from a list"`: it stops at
the line with the slow call.
## Predict
A list has 16 float32 images of 3 x 64 x 64 numbers. How many times as long does torch.tensor take
as torch.from_numpy(np.stack(arrays))?
## Look for
- [same] torch.tensor of a list of arrays, torch.tensor of np.array, np.stack with from_numpy,
  torch.stack, and default_collate give the same tensor bit for bit
- [reads] torch.tensor of a list of arrays asks the arrays at least once for each number that they
  hold
- [as-tensor] torch.as_tensor of a list of arrays asks the arrays for items as often as torch.tensor
  does
- [blocks] np.array, np.stack, torch.stack and default_collate ask each array of a list at most once
  for an item
- [warning] torch.tensor and torch.as_tensor of a list of arrays warn that this is extremely slow,
  and so does torch.tensor of a tuple
- [quiet] torch.tensor of one stacked array warns about nothing
- [dtypes] torch.tensor makes a float64 tensor of a list of float64 arrays, and a float32 tensor of
  the same numbers as Python floats
- [shared] if an array changes, its tensor from from_numpy or as_tensor changes, and its tensor from
  torch.tensor does not
- [list-time] for a list of 16 images, torch.tensor takes at least 100 times as long as np.stack and
  torch.from_numpy
- [collate-time] for a list of 16 images, torch.tensor takes at least 100 times as long as the
  default collate function
## Try next
`--stacked`: torch.tensor and torch.as_tensor get one array in place of the list, so they read no
number as a Python object. refutes: reads, warning
`--side 1`: three numbers in each array. The gain in time is WEAKER THAN CLAIMED.
## Source
- The warning of torch: "Creating a tensor from a list of numpy.ndarrays is extremely slow".
- PyTorch documentation, `torch.from_numpy`,
  https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html: the tensor and the array
  share the same memory.
- Ours: the number of reads, the forms that are not slow, and the times.
"""

import warnings

import numpy as np
import torch
from torch.utils.benchmark import Timer
from torch.utils.data import default_collate

from tuilab import Lab

IMAGES = 16


class CountedArray(np.ndarray):
    """An array that counts how often somebody asks it for an item or a row."""

    reads = 0

    def __getitem__(self, index):
        CountedArray.reads += 1
        return super().__getitem__(index)


def from_list(arrays):
    return torch.tensor(arrays)


def as_tensor_of_list(arrays):
    return torch.as_tensor(arrays)


def from_array(arrays):
    return torch.tensor(np.array(arrays))


def stacked_by_numpy(arrays):
    return torch.from_numpy(np.stack(arrays))


def stacked_by_torch(arrays):
    return torch.stack([torch.from_numpy(array) for array in arrays])


def collated(arrays):
    return default_collate(arrays)


SLOW = (from_list, as_tensor_of_list)
FAST = (from_array, stacked_by_numpy, stacked_by_torch, collated)


def make_images(side):
    generator = np.random.default_rng(0)
    images = []
    for _ in range(IMAGES):
        images.append(generator.random((3, side, side), dtype=np.float32))
    return images


def count_reads(form, images, is_stacked):
    """Return how often a form asks the arrays for an item."""
    counted = [image.view(CountedArray) for image in images]
    if is_stacked:
        counted = np.stack(images).view(CountedArray)
    CountedArray.reads = 0
    form(counted)
    return CountedArray.reads


def claim_reads(lab, images, is_stacked):
    lab.stage("reads")
    numbers = sum(image.size for image in images)
    reads = {}
    for form in (*SLOW, *FAST):
        reads[form.__name__] = count_reads(form, images, is_stacked and form in SLOW)
    lab.bars("reads of Python objects", {"numbers": numbers, **reads})
    lab.claim("reads", reads["from_list"] / numbers, at_least=1)
    lab.claim("as-tensor", reads["as_tensor_of_list"] - reads["from_list"], equals=0)
    lab.claim("blocks", max(reads[form.__name__] for form in FAST), at_most=IMAGES)


def is_warned(lab, form, arrays):
    messages = lab.warns(form, arrays)
    return any("extremely slow" in message for message in messages)


def claim_warnings(lab, images, is_stacked):
    lab.stage("warnings")
    stacked = np.stack(images)
    arrays = stacked if is_stacked else images
    as_tuple = stacked if is_stacked else tuple(images)
    warned = [is_warned(lab, form, arrays) for form in SLOW]
    warned.append(is_warned(lab, from_list, as_tuple))
    lab.claim("warning", warned, equals=[True, True, True])
    lab.claim("quiet", len(lab.warns(from_list, stacked)), equals=0)


def is_changed_with_array(make):
    array = np.zeros(3)
    tensor = make(array)
    array[0] = 1
    return tensor[0].item() == 1


def claim_values(lab, images):
    lab.stage("values")
    expected = from_list(images)
    same = [torch.equal(form(images), expected) for form in FAST]
    lab.claim("same", same, equals=[True] * 4)

    rows = [np.zeros(3), np.ones(3)]
    of_arrays = torch.tensor(rows).dtype
    of_floats = torch.tensor([row.tolist() for row in rows]).dtype
    lab.claim("dtypes", [str(of_arrays), str(of_floats)], equals=["torch.float64", "torch.float32"])
    changed = []
    for make in (torch.from_numpy, torch.as_tensor, torch.tensor):
        changed.append(is_changed_with_array(make))
    lab.claim("shared", changed, equals=[True, True, False])


def measure_ms(form, images):
    timer = Timer("form(images)", globals={"form": form, "images": images})
    return 1e3 * timer.blocked_autorange(min_run_time=0.01).median


def draw_times(lab):
    lab.axes("convert_ms", x="pixels of a side", y="making the tensor", log="xy")
    for side in lab.sweep([1, 2, 4, 8, 16, 32, 64], "larger and larger images"):
        images = make_images(side)
        for form in (from_list, stacked_by_numpy, stacked_by_torch):
            lab.log(side, arm=form.__name__, convert_ms=measure_ms(form, images))


def run(
    lab: Lab,
    side: int = 64,  # pixels of a side of each image, 1..256
    stacked: bool = False,  # torch.tensor and torch.as_tensor get one array
) -> None:
    warnings.filterwarnings("ignore", "Creating a tensor from a list")  # shown by claim_warnings
    images = make_images(side)

    @lab.once
    def exact():
        draw_times(lab)
        claim_reads(lab, images, stacked)
        claim_warnings(lab, images, stacked)
        claim_values(lab, images)

    lab.stage("timing")
    lab.claim_ratio("list-time", "list/stack", at_least=100, answers=True)
    lab.claim_ratio("collate-time", "list/collate", at_least=100)
    arrays = np.stack(images) if stacked else images
    lab.race(
        list=lambda: from_list(arrays),
        stack=lambda: stacked_by_numpy(images),
        collate=lambda: collated(images),
        same=0.0,
        seconds=0.3,
        device=torch.device("cpu"),
    )
