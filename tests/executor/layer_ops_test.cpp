// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Norms, activations and softmax against plain f64 loops; their gradients against differences.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "base/error.hpp"
#include "tests/executor/executors.hpp"
#include "tests/executor/narrow_values.hpp"

namespace isoscale::executor {
namespace {

using program::Activation;
using program::ActivationGradient;
using program::ActivationKind;
using program::DType;
using program::Matrix;
using program::Norm;
using program::NormGradient;
using program::Slice;
using program::Softmax;
using program::SoftmaxGradient;

using Values = std::vector<double>;

// As they are defined, for one row.

Values norm_row(const Values& s, double epsilon) {
  double squares = 0;
  for (const double value : s) squares += value * value;
  Values y;
  for (const double value : s) {
    y.push_back(value / std::sqrt(squares / static_cast<double>(s.size()) + epsilon));
  }
  return y;
}

double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double swiglu(double x, double up) { return up * x / (1 + std::exp(-x)); }

Values softmax_row(const Values& x) {
  double sum = 0;
  for (const double value : x) sum += std::exp(value);
  Values y;
  for (const double value : x) y.push_back(std::exp(value) / sum);
  return y;
}

/// d(sum of weights * f(x)) / dx by central differences.
Values differences(const std::function<Values(const Values&)>& f, const Values& x,
                   const Values& weights) {
  constexpr double step = 1e-5;
  Values result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    Values above = x, below = x;
    above[i] += step;
    below[i] -= step;
    const Values high = f(above), low = f(below);
    double sum = 0;
    for (std::size_t j = 0; j < high.size(); ++j) sum += weights[j] * (high[j] - low[j]);
    result.push_back(sum / (2 * step));
  }
  return result;
}

/// Below what central differences of values around 1 are exact to, in f64.
constexpr double difference_error = 1e-8;

// Playing.

constexpr std::uint32_t rows = 5, columns = 37;

/// One more than a row needs between two: what must not be touched.
constexpr std::uint64_t stride = columns + 3;

class LayerOps : public EachExecutor {
 protected:
  static Matrix matrix(Sketch& sketch, DType type, std::uint32_t batch = 1) {
    return {.slice = sketch.buffer(type, batch * rows * stride),
            .row_stride = stride,
            .batch_stride = rows * stride};
  }
  /// What the rows of a matrix hold.
  static std::vector<Values> rows_of(Session& session, const Matrix& matrix, DType type,
                                     std::uint32_t batch = 1) {
    const Values all = read_as_doubles(session, matrix.slice, type);
    std::vector<Values> result;
    for (std::uint64_t row = 0; row < std::uint64_t{batch} * rows; ++row) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * stride);
      result.emplace_back(begin, begin + columns);
    }
    return result;
  }
  static std::vector<Values> put_random(Session& session, const Matrix& matrix, DType type,
                                        unsigned seed, std::uint32_t batch = 1) {
    write_doubles(session, matrix.slice, type, random_values<double>(matrix.slice.count, seed));
    return rows_of(session, matrix, type, batch);
  }
  /// What lies between rows stays.
  static void expect_gaps(Session& session, const Matrix& matrix, DType type, unsigned seed) {
    const auto before = random_values<double>(matrix.slice.count, seed);
    const Values after = read_as_doubles(session, matrix.slice, type);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (i % stride < columns) continue;
      EXPECT_EQ(after[i], rounded_to(type, before[i])) << "element " << i;
    }
  }
};

void expect_near(const Values& got, const Values& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

/// Twice what rounding a value once loses, and a few roundings of what it is computed in.
double tolerance_of(DType type) {
  switch (type) {
    case DType::f64:
      return 1e-14;
    case DType::f32:
      return 2e-6;
    case DType::f16:
      return std::ldexp(1.0, -10);
    default:
      return std::ldexp(1.0, -7);
  }
}

enum class InPlace : std::uint8_t { no, yes };

class LayerOpsOf : public LayerOps {
 protected:
  void norm(DType type, InPlace in_place, bool adds);
  void norm_gradient(DType type, bool adds);
  void activation(DType type, ActivationKind kind, InPlace in_place);
  void activation_gradient(DType type, ActivationKind kind, InPlace in_place);
  void softmax(DType type, InPlace in_place);
  void softmax_gradient(DType type, InPlace in_place);
  void every_op(DType type);
};

DType inverse_type(DType type) { return type == DType::f64 ? DType::f64 : DType::f32; }

void LayerOpsOf::norm(DType type, InPlace in_place, bool adds) {
  constexpr double epsilon = 0.25;
  Sketch sketch;
  const Matrix x = matrix(sketch, type), addend = matrix(sketch, type), sum = matrix(sketch, type);
  const Matrix y = in_place == InPlace::yes ? (adds ? sum : x) : matrix(sketch, type);
  const Slice inverse = sketch.buffer(inverse_type(type), rows);
  Norm op{.rows = rows, .columns = columns, .x = x, .y = y, .inverse = inverse, .epsilon = epsilon};
  if (adds) {
    op.addend = addend;
    op.sum = sum;
  }
  sketch.emit(op);
  const auto session = prepare(sketch);
  auto expected = put_random(*session, x, type, 1);
  const auto more = put_random(*session, addend, type, 2);
  put_random(*session, sum, type, 3);
  if (in_place == InPlace::no) put_random(*session, y, type, 4);
  session->play(program::Section::step, Trace::off);
  const auto got = rows_of(*session, y, type), sums = rows_of(*session, sum, type);
  const Values inverses = read_as_doubles(*session, inverse, inverse_type(type));
  for (std::uint32_t row = 0; row < rows; ++row) {
    double squares = 0;
    for (std::uint32_t i = 0; i < columns; ++i) {
      // A sum is normed as it is stored.
      if (adds) expected[row][i] = rounded_to(type, expected[row][i] + more[row][i]);
      squares += expected[row][i] * expected[row][i];
    }
    if (adds && in_place == InPlace::no) {
      expect_near(sums[row], expected[row], tolerance_of(type));
    }
    expect_near(got[row], norm_row(expected[row], epsilon), tolerance_of(type));
    EXPECT_NEAR(inverses[row], 1 / std::sqrt(squares / columns + epsilon),
                type == DType::f64 ? 1e-14 : 2e-6);
  }
  if (in_place == InPlace::no) expect_gaps(*session, y, type, 4);
}

void LayerOpsOf::norm_gradient(DType type, bool adds) {
  constexpr double epsilon = 0.25;
  Sketch sketch;
  const Matrix s = matrix(sketch, type), y = matrix(sketch, type), dy = matrix(sketch, type);
  const Matrix addend = matrix(sketch, type), dx = matrix(sketch, type);
  const Slice inverse = sketch.buffer(inverse_type(type), rows);
  sketch.emit(Norm{
      .rows = rows, .columns = columns, .x = s, .y = y, .inverse = inverse, .epsilon = epsilon});
  NormGradient op{.rows = rows, .columns = columns, .dy = dy, .s = s, .dx = dx, .inverse = inverse};
  if (adds) op.addend = addend;
  sketch.emit(op);
  op.dx = dy;  // in place: the same once more
  sketch.emit(op);
  const auto session = prepare(sketch);
  const auto at = put_random(*session, s, type, 1), from = put_random(*session, dy, type, 2);
  const auto more = put_random(*session, addend, type, 3);
  session->play(program::Section::step, Trace::off);
  const auto apart = rows_of(*session, dx, type), onto = rows_of(*session, dy, type);
  for (std::uint32_t row = 0; row < rows; ++row) {
    Values expected =
        differences([](const Values& x) { return norm_row(x, epsilon); }, at[row], from[row]);
    for (std::uint32_t i = 0; adds && i < columns; ++i) expected[i] += more[row][i];
    expect_near(apart[row], expected, tolerance_of(type) + difference_error);
    EXPECT_EQ(onto[row], apart[row]);
  }
}

void LayerOpsOf::activation(DType type, ActivationKind kind, InPlace in_place) {
  const bool gated = kind == ActivationKind::swiglu;
  Sketch sketch;
  const Matrix x = matrix(sketch, type), up = matrix(sketch, type);
  const Matrix y = in_place == InPlace::yes ? x : matrix(sketch, type);
  Activation op{.kind = kind, .rows = rows, .columns = columns, .x = x, .y = y};
  if (gated) op.up = up;
  sketch.emit(op);
  const auto session = prepare(sketch);
  const auto at = put_random(*session, x, type, 1), other = put_random(*session, up, type, 2);
  session->play(program::Section::step, Trace::off);
  const auto got = rows_of(*session, y, type);
  for (std::uint32_t row = 0; row < rows; ++row) {
    Values expected;
    for (std::uint32_t i = 0; i < columns; ++i) {
      expected.push_back(gated ? swiglu(at[row][i], other[row][i]) : gelu(at[row][i]));
    }
    expect_near(got[row], expected, tolerance_of(type));
  }
  if (in_place == InPlace::yes) expect_gaps(*session, x, type, 1);
}

void LayerOpsOf::activation_gradient(DType type, ActivationKind kind, InPlace in_place) {
  const bool gated = kind == ActivationKind::swiglu;
  Sketch sketch;
  const Matrix dy = matrix(sketch, type), x = matrix(sketch, type), up = matrix(sketch, type);
  const bool onto = in_place == InPlace::yes;
  const Matrix dx = onto ? (gated ? x : dy) : matrix(sketch, type);
  const Matrix dup = onto ? up : matrix(sketch, type);
  ActivationGradient op{.kind = kind, .rows = rows, .columns = columns, .dy = dy, .x = x, .dx = dx};
  if (gated) {
    op.up = up;
    op.dup = dup;
  }
  sketch.emit(op);
  const auto session = prepare(sketch);
  const auto from = put_random(*session, dy, type, 1), at = put_random(*session, x, type, 2);
  const auto other = put_random(*session, up, type, 3);
  session->play(program::Section::step, Trace::off);
  const auto dxs = rows_of(*session, dx, type), dups = rows_of(*session, dup, type);
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t i = 0; i < columns; ++i) {
      const double ups = other[row][i];
      const auto by_x = [&](const Values& v) {
        return Values{gated ? swiglu(v[0], ups) : gelu(v[0])};
      };
      const double tolerance = tolerance_of(type) + difference_error;
      expect_near({dxs[row][i]}, differences(by_x, {at[row][i]}, {from[row][i]}), tolerance);
      if (!gated) continue;
      const auto by_up = [&](const Values& v) { return Values{swiglu(at[row][i], v[0])}; };
      expect_near({dups[row][i]}, differences(by_up, {ups}, {from[row][i]}), tolerance);
    }
  }
}

void LayerOpsOf::softmax(DType type, InPlace in_place) {
  constexpr std::uint32_t batch = 3;
  Sketch sketch;
  const Matrix x = matrix(sketch, type, batch);
  const Matrix y = in_place == InPlace::yes ? x : matrix(sketch, type, batch);
  sketch.emit(Softmax{.rows = rows, .columns = columns, .batch = batch, .x = x, .y = y});
  const auto session = prepare(sketch);
  const auto at = put_random(*session, x, type, 1, batch);
  session->play(program::Section::step, Trace::off);
  const auto got = rows_of(*session, y, type, batch);
  for (std::size_t row = 0; row < got.size(); ++row) {
    expect_near(got[row], softmax_row(at[row]), tolerance_of(type));
  }
  if (in_place == InPlace::yes) expect_gaps(*session, x, type, 1);
}

void LayerOpsOf::softmax_gradient(DType type, InPlace in_place) {
  constexpr std::uint32_t batch = 3;
  Sketch sketch;
  const Matrix x = matrix(sketch, type, batch), y = matrix(sketch, type, batch);
  const Matrix dy = matrix(sketch, type, batch);
  const Matrix dx = in_place == InPlace::yes ? dy : matrix(sketch, type, batch);
  sketch.emit(Softmax{.rows = rows, .columns = columns, .batch = batch, .x = x, .y = y});
  sketch.emit(SoftmaxGradient{
      .rows = rows, .columns = columns, .batch = batch, .y = y, .dy = dy, .dx = dx});
  const auto session = prepare(sketch);
  const auto at = put_random(*session, x, type, 1, batch);
  const auto from = put_random(*session, dy, type, 2, batch);
  session->play(program::Section::step, Trace::off);
  const auto got = rows_of(*session, dx, type, batch);
  for (std::size_t row = 0; row < got.size(); ++row) {
    expect_near(got[row], differences(softmax_row, at[row], from[row]),
                tolerance_of(type) + difference_error);
  }
}

void LayerOpsOf::every_op(DType type) {
  SCOPED_TRACE(program::name(type));
  for (const bool adds : {false, true}) {
    norm(type, InPlace::no, adds);
    norm(type, InPlace::yes, adds);
    norm_gradient(type, adds);
  }
  for (const InPlace in_place : {InPlace::no, InPlace::yes}) {
    for (const ActivationKind kind : {ActivationKind::gelu, ActivationKind::swiglu}) {
      activation(type, kind, in_place);
      activation_gradient(type, kind, in_place);
    }
    softmax(type, in_place);
    softmax_gradient(type, in_place);
  }
}

TEST_P(LayerOpsOf, WideTypesAreWhatTheirDefinitionsGive) {
  every_op(DType::f32);
  every_op(DType::f64);
}

TEST_P(LayerOpsOf, LargeScoresDoNotOverflow) {
  Sketch sketch;
  const Slice x = sketch.buffer<float>(3);
  const Matrix row{.slice = x, .row_stride = 3};
  sketch.emit(Softmax{.rows = 1, .columns = 3, .x = row, .y = row});
  const auto session = prepare(sketch);
  put<float>(*session, x, {1000, 999, -1e30F});
  session->play(program::Section::step, Trace::off);
  const auto got = get<float>(*session, x);
  const double e = std::exp(1.0);
  EXPECT_NEAR(static_cast<double>(got[0]), e / (e + 1), 1e-6);
  EXPECT_NEAR(static_cast<double>(got[1]), 1 / (e + 1), 1e-6);
  EXPECT_EQ(got[2], 0);
}

TEST_P(LayerOpsOf, LongRowsAndManyOfThem) {
  // More columns than a block has threads, more rows than a device has blocks for.
  constexpr std::uint32_t wide = 1'000, many = 3'000;
  Sketch sketch;
  const Slice x = sketch.buffer<double>(std::uint64_t{wide} * many);
  const Slice y = sketch.buffer<double>(x.count), inverse = sketch.buffer<double>(many);
  const Matrix from{.slice = x, .row_stride = wide}, to{.slice = y, .row_stride = wide};
  sketch.emit(
      Norm{.rows = many, .columns = wide, .x = from, .y = to, .inverse = inverse, .epsilon = 0});
  const auto session = prepare(sketch);
  const auto values = random_values<double>(x.count, 1);
  put(*session, x, values);
  session->play(program::Section::step, Trace::off);
  const auto got = get<double>(*session, y);
  for (const std::size_t row : {0U, 1U, 2'111U, 2'999U}) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * wide);
    const Values expected = norm_row(Values(begin, begin + wide), 0);
    for (const std::size_t i : {0U, 1U, 255U, 256U, 999U}) {
      EXPECT_NEAR(got[row * wide + i], expected[i], 1e-13) << row << ", " << i;
    }
  }
}

TEST_P(LayerOpsOf, RefuseOperandsThatDoNotGoTogether) {
  const auto refused = [&](const auto& make) {
    Sketch sketch;
    make(sketch);
    EXPECT_THROW(static_cast<void>(prepare(sketch)), base::Error);
  };
  refused([](Sketch& sketch) {  // f64 beside f32
    const Matrix x = matrix(sketch, DType::f32), y = matrix(sketch, DType::f64);
    sketch.emit(Softmax{.rows = rows, .columns = columns, .x = x, .y = y});
  });
  refused([](Sketch& sketch) {  // inverses in f32 beside f64
    const Matrix x = matrix(sketch, DType::f64);
    sketch.emit(Norm{.rows = rows,
                     .columns = columns,
                     .x = x,
                     .y = x,
                     .inverse = sketch.buffer(DType::f32, rows)});
  });
  refused([](Sketch& sketch) {  // too few inverses
    const Matrix x = matrix(sketch, DType::f32);
    sketch.emit(Norm{.rows = rows,
                     .columns = columns,
                     .x = x,
                     .y = x,
                     .inverse = sketch.buffer(DType::f32, rows - 1)});
  });
  refused([](Sketch& sketch) {  // swiglu of one operand
    const Matrix x = matrix(sketch, DType::f32);
    sketch.emit(Activation{
        .kind = ActivationKind::swiglu, .rows = rows, .columns = columns, .x = x, .y = x});
  });
  refused([](Sketch& sketch) {  // integers
    const Matrix x = matrix(sketch, DType::i32);
    sketch.emit(Softmax{.rows = rows, .columns = columns, .x = x, .y = x});
  });
}

INSTANTIATE_TEST_SUITE_P(Executors, LayerOpsOf, each_backend(), name_of);

class NarrowLayerOps : public LayerOpsOf {};

TEST_P(NarrowLayerOps, AreComputedWidelyAndRoundedOnce) {
  every_op(DType::f16);
  every_op(DType::bf16);
}

INSTANTIATE_TEST_SUITE_P(Executors, NarrowLayerOps, each_narrow_backend(), name_of);

TEST_P(LayerOpsOf, NarrowTypesArePlayedOrRefusedAsAWhole) {
  Sketch sketch;
  const Matrix x = matrix(sketch, DType::e4m3);
  sketch.emit(Softmax{.rows = rows, .columns = columns, .x = x, .y = x});
  EXPECT_THROW(static_cast<void>(prepare(sketch)), base::Error);
}

}  // namespace
}  // namespace isoscale::executor
