// Op definitions of Euclidean distances between rows, for their kernels.
#pragma once

#include "core/op.h"

namespace flow::ops {

// a (…, P, M), b (…, R, M) -> (…, P, R): the lengths of a[i] - b[j]. Leading dims are equal.
extern const OpDef kCdist;
// w (…, P, R), a, b -> (…, P, M): y[i] = sum over j of w[i][j] (a[i] - b[j]), the gradient by a.
extern const OpDef kSumDifferences;

}  // namespace flow::ops
