"""Cases of maxima with their places, and of the way back."""

import torch.nn.functional as F

from op_case import NAN, add, f32, ints, r


def indexed_pools():
    add("max_pool1d", r(2, 2, 7), kernel_size=3, stride=2, padding=1, ceil_mode=True,
        return_indices=True)
    add("max_pool1d", f32([[1.0, 1.0, NAN, 2.0, NAN, 0.0]]), kernel_size=3, stride=3,
        return_indices=True, grads=False)
    add("max_pool3d", r(2, 2, 4, 5, 3), kernel_size=2, stride=[2, 1, 1], return_indices=True)
    add("max_pool3d", r(2, 4, 5, 6), kernel_size=[3, 2, 2], padding=[1, 1, 0], dilation=[1, 2, 2],
        stride=2, return_indices=True)
    add("max_pool3d", ints(3, 1, 1, 4, 4, 4).float(), kernel_size=2, stride=1,
        return_indices=True)
    add("adaptive_max_pool1d", r(2, 2, 7), output_size=3, return_indices=True)
    add("adaptive_max_pool2d", r(2, 2, 7, 5), output_size=[3, 2], return_indices=True)
    add("adaptive_max_pool2d", r(2, 3, 2), output_size=[5, 3], return_indices=True)
    add("adaptive_max_pool2d", f32([[[1.0, 1.0, NAN], [1.0, NAN, 0.0]]]), output_size=[2, 2],
        return_indices=True, grads=False)
    add("adaptive_max_pool2d", r(2, 7), output_size=2, error=True)
    add("adaptive_max_pool3d", r(2, 2, 4, 5, 3), output_size=[2, 3, 2], return_indices=True)
    add("adaptive_max_pool3d", ints(3, 1, 4, 4, 4).float(), output_size=[3, 2, 2],
        return_indices=True)
    for dims, even, odd in [(1, [8], [7]), (2, [6, 4], [6, 5]), (3, [4, 6, 4], [4, 5, 4])]:
        pool = getattr(F, f"max_pool{dims}d")
        values, indices = pool(r(2, 2, *even), 2, return_indices=True)
        add(f"max_unpool{dims}d", {"x": values, "indices": indices}, kernel_size=2)
        values, indices = pool(r(2, *odd), 2, return_indices=True)
        add(f"max_unpool{dims}d", {"x": values, "indices": indices}, kernel_size=2,
            output_size=odd)
    values, indices = F.max_pool2d(r(1, 2, 7, 6), [3, 2], 2, [1, 0], return_indices=True)
    add("max_unpool2d", {"x": values, "indices": indices}, kernel_size=[3, 2], stride=2,
        padding=[1, 0], output_size=[1, 2, 8, 6])
    values, indices = F.max_pool2d(r(1, 1, 3, 3), 2, 1, return_indices=True)
    add("max_unpool2d", {"x": values, "indices": indices}, kernel_size=2, stride=1)
    add("max_unpool2d", {"x": r(1, 2, 2), "indices": ints(16, 1, 2, 2)}, kernel_size=2,
        output_size=[6, 4], error=True)
    add("max_unpool2d", {"x": r(1, 1, 2), "indices": ints(1, 1, 1, 2) + 8}, kernel_size=2,
        error=True)
    add("max_unpool1d", {"x": r(1, 2), "indices": ints(2, 1, 3)}, kernel_size=2, error=True)
