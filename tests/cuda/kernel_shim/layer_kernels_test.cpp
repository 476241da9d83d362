// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The shipped kernels of layer_kernels.hpp against the stand-ins' loops, on random cases.
#include <gtest/gtest.h>

#include <vector>

#include "tests/cuda/kernel_shim/shipped.hpp"

namespace isoscale::kernel_shim {
namespace {

using program::ActivationKind;
using program::DType;
using namespace executor::cuda;  // NOLINT: the calls

/// The matrices of a call and where they lie in both copies.
class Matrices {
 public:
  Matrices(Case& one, DType type, std::uint64_t rows, std::uint64_t columns,
           std::uint64_t batch = 1)
      : one_(one), type_(type), rows_(rows), columns_(columns), batch_(batch) {}

  /// A matrix with strides of its own; `at` is a member of the call.
  void add(MatrixAt& at, Values values) {
    at.row_stride = one_.stride(columns_);
    at.batch_stride = rows_ * at.row_stride + (one_.coin() ? one_.below(3) : 0);
    arrays_.push_back(one_.take(type_, batch_ * at.batch_stride, values));
    at.data = arrays_.back().kernel;
  }
  /// Points a copy of the call at the other copies.
  void refer(std::initializer_list<MatrixAt*> matrices) const {
    for (MatrixAt* const matrix : matrices) {
      for (const Array& array : arrays_) {
        if (matrix->data != array.kernel) continue;
        matrix->data = array.reference;
        break;
      }
    }
  }

 private:
  Case& one_;
  DType type_;
  std::uint64_t rows_, columns_, batch_;
  std::vector<Array> arrays_;
};

DType inverse_type(DType type) { return type == DType::f64 ? DType::f64 : DType::f32; }

/// Sums of products are larger than what they sum: so is what their order changes.
Tolerance times(double factor, Tolerance tolerance) { return {factor * tolerance.relative}; }

constexpr int rounds = 25;

TEST(ShippedLayerKernels, Norm) {
  for_cases(floats, rounds, [](Case& one, DType type) {
    NormCall call{.type = type, .rows = one.extent() % 60 + 1, .columns = one.extent()};
    call.epsilon = 1e-5;
    Matrices matrices{one, type, call.rows, call.columns};
    matrices.add(call.x, Values::numbers);
    matrices.add(call.y, Values::bits);
    if (one.coin()) {
      matrices.add(call.addend, Values::numbers);
      matrices.add(call.sum, Values::bits);
    }
    if (one.below(3) == 0) call.y = call.x;
    const Array inverse = one.take(inverse_type(type), call.rows, Values::bits);
    call.inverse = inverse.kernel;
    start_both(one, call, [&](NormCall& at) {
      matrices.refer({&at.x, &at.addend, &at.sum, &at.y});
      at.inverse = inverse.reference;
    });
    one.compare("norm", rounding_of(type));
  });
}

TEST(ShippedLayerKernels, NormGradient) {
  for_cases(floats, rounds, [](Case& one, DType type) {
    NormGradientCall call{.type = type, .rows = one.extent() % 60 + 1, .columns = one.extent()};
    Matrices matrices{one, type, call.rows, call.columns};
    matrices.add(call.dy, Values::numbers);
    matrices.add(call.s, Values::numbers);
    matrices.add(call.dx, Values::bits);
    if (one.coin()) matrices.add(call.addend, Values::numbers);
    if (one.below(3) == 0) call.dx = call.dy;
    const Array inverse = one.take(inverse_type(type), call.rows, Values::positive);
    call.inverse = inverse.kernel;
    start_both(one, call, [&](NormGradientCall& at) {
      matrices.refer({&at.dy, &at.s, &at.addend, &at.dx});
      at.inverse = inverse.reference;
    });
    one.compare("norm gradient", times(10, rounding_of(type)));
  });
}

TEST(ShippedLayerKernels, Activation) {
  for_cases(floats, 2 * rounds, [](Case& one, DType type) {
    ActivationCall call{.type = type, .rows = one.extent(), .columns = one.extent()};
    Matrices matrices{one, type, call.rows, call.columns};
    matrices.add(call.x, Values::numbers);
    matrices.add(call.y, Values::bits);
    if (one.coin()) {
      call.kind = ActivationKind::swiglu;
      matrices.add(call.up, Values::numbers);
    }
    if (one.below(3) == 0) call.y = call.x;
    start_both(one, call, [&](ActivationCall& at) { matrices.refer({&at.x, &at.up, &at.y}); });
    one.compare("activation", rounding_of(type));
  });
}

TEST(ShippedLayerKernels, ActivationGradient) {
  for_cases(floats, 2 * rounds, [](Case& one, DType type) {
    ActivationGradientCall call{.type = type, .rows = one.extent(), .columns = one.extent()};
    Matrices matrices{one, type, call.rows, call.columns};
    matrices.add(call.dy, Values::numbers);
    matrices.add(call.x, Values::numbers);
    matrices.add(call.dx, Values::bits);
    if (one.coin()) {
      call.kind = ActivationKind::swiglu;
      matrices.add(call.up, Values::numbers);
      matrices.add(call.dup, Values::bits);
      if (one.below(3) == 0) call.dup = call.up;
    }
    if (one.below(3) == 0) call.dx = call.dy;
    start_both(one, call, [&](ActivationGradientCall& at) {
      matrices.refer({&at.dy, &at.x, &at.up, &at.dx, &at.dup});
    });
    one.compare("activation gradient", times(10, rounding_of(type)));
  });
}

TEST(ShippedLayerKernels, Softmax) {
  for_cases(floats, rounds, [](Case& one, DType type) {
    SoftmaxCall call{.type = type, .rows = one.extent() % 30 + 1, .columns = one.extent()};
    call.batch = 1 + one.below(3);
    Matrices matrices{one, type, call.rows, call.columns, call.batch};
    matrices.add(call.x, Values::numbers);
    matrices.add(call.y, Values::bits);
    if (one.coin()) call.y = call.x;
    start_both(one, call, [&](SoftmaxCall& at) { matrices.refer({&at.x, &at.y}); });
    one.compare("softmax", rounding_of(type));
  });
}

TEST(ShippedLayerKernels, SoftmaxGradient) {
  for_cases(floats, rounds, [](Case& one, DType type) {
    SoftmaxGradientCall call{.type = type, .rows = one.extent() % 30 + 1, .columns = one.extent()};
    call.batch = 1 + one.below(3);
    Matrices matrices{one, type, call.rows, call.columns, call.batch};
    matrices.add(call.y, Values::positive);
    matrices.add(call.dy, Values::numbers);
    matrices.add(call.dx, Values::bits);
    if (one.coin()) call.dx = call.dy;
    start_both(one, call, [&](SoftmaxGradientCall& at) {
      matrices.refer({&at.y, &at.dy, &at.dx});
    });
    one.compare("softmax gradient", times(20, rounding_of(type)));
  });
}

}  // namespace
}  // namespace isoscale::kernel_shim
