"""Cases of fractional max pooling, with the random numbers that place the windows."""

import torch

from op_case import add, generator, ints, r


def samples(*shape):
    return torch.rand(shape, generator=generator, dtype=torch.float32)


def fractional_pools():
    def case(op, x, places, **attrs):
        add(op, {"x": x, "random_samples": places}, constant=("random_samples",),
            call=lambda x, u, **kwargs: getattr(torch.nn.functional, op)(
                x, _random_samples=u, **kwargs), **attrs)

    plane, volume = "fractional_max_pool2d", "fractional_max_pool3d"
    case(plane, r(2, 3, 9, 7), samples(2, 3, 2), kernel_size=2, output_size=[5, 4])
    case(plane, r(2, 3, 9, 7), samples(2, 3, 2), kernel_size=[3, 2], output_size=4,
         return_indices=True)
    case(plane, r(3, 9, 8), samples(1, 3, 2), kernel_size=2, output_ratio=[0.5, 0.7],
         return_indices=True)
    case(plane, r(1, 2, 6, 6), samples(1, 2, 2), kernel_size=3, output_ratio=[0.4, 0.6])
    case(plane, ints(3, 1, 2, 6, 5).float(), samples(1, 2, 2), kernel_size=2, output_size=[1, 3],
         return_indices=True)
    case(plane, r(1, 1, 5, 5), samples(1, 1, 2), kernel_size=3, output_size=4, error=True)
    case(volume, r(2, 2, 5, 6, 7), samples(2, 2, 3), kernel_size=2, output_size=[3, 4, 2])
    case(volume, r(2, 2, 5, 6, 7), samples(2, 2, 3), kernel_size=[2, 1, 3],
         output_size=[2, 5, 4], return_indices=True)
    case(volume, r(2, 6, 7, 6), samples(1, 2, 3), kernel_size=2, output_ratio=[0.5, 0.6, 0.7],
         return_indices=True)
    case(volume, r(1, 1, 6, 6, 5), samples(1, 1, 3), kernel_size=2, output_ratio=[0.6, 0.5, 0.5])
    case(volume, r(1, 1, 4, 4, 4), samples(1, 1, 3), kernel_size=3, output_size=3, error=True)
