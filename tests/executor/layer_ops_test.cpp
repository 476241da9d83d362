// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Norms, activations and softmax against plain f64 loops; their gradients against differences.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "tests/executor/executors.hpp"

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

// These functions follow the definitions of the ops, for one row.

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

/// A matrix of an op, and what its rows hold before.
struct Operand {
  Matrix matrix;
  unsigned seed = 0;
  std::vector<Values> rows{};
};

class LayerOps : public EachExecutor {
 protected:
  /// The next operand of the op that is tried, of random values.
  Operand operand(std::uint32_t batch = 1) {
    const Matrix matrix{.slice = sketch_.buffer(type_, batch * rows * stride),
                        .row_stride = stride,
                        .batch_stride = rows * stride};
    const unsigned seed = static_cast<unsigned>(matrices_.size()) + 1;
    matrices_.push_back(matrix);
    return {matrix, seed,
            rows_of(all_rounded(type_, random_values<double>(matrix.slice.count, seed)))};
  }
  static std::vector<Values> rows_of(const Values& all) {
    std::vector<Values> result;
    for (auto row = all.begin(); row < all.end(); row += static_cast<std::ptrdiff_t>(stride)) {
      result.emplace_back(row, row + columns);
    }
    return result;
  }
  /// Plays the ops emitted so far, and begins a new sketch.
  void play() {
    session_ = prepare(sketch_);
    for (unsigned i = 0; i < matrices_.size(); ++i) {
      const Slice& slice = matrices_[i].slice;
      put(*session_, slice, stored(type_, random_values<double>(slice.count, i + 1)));
    }
    session_->play(program::Section::step, Trace::off);
    sketch_ = {};
    matrices_.clear();
  }
  std::vector<Values> result(const Operand& of) {
    return rows_of(read_as_doubles(*session_, of.matrix.slice, type_));
  }
  /// Expects that the elements between rows keep their values.
  void expect_gaps(const Operand& of) {
    const auto before = random_values<double>(of.matrix.slice.count, of.seed);
    const Values after = read_as_doubles(*session_, of.matrix.slice, type_);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (i % stride < columns) continue;
      EXPECT_EQ(after[i], rounded_to(type_, before[i])) << "element " << i;
    }
  }
  [[nodiscard]] DType inverse_type() const { return type_ == DType::f64 ? type_ : DType::f32; }
  [[nodiscard]] double tolerance() const { return tolerance_of(type_); }

  void norm(InPlace in_place, bool adds);
  void norm_gradient(bool adds);
  void activation(ActivationKind kind, InPlace in_place);
  void activation_gradient(ActivationKind kind, InPlace in_place);
  void softmax(InPlace in_place);
  void softmax_gradient(InPlace in_place);

  DType type_ = DType::f64;
  Sketch sketch_;
  std::vector<Matrix> matrices_;  ///< of the sketch, in the order in which they were taken
  std::unique_ptr<Session> session_;
};

void LayerOps::norm(InPlace in_place, bool adds) {
  constexpr double epsilon = 0.25;
  const Operand x = operand(), addend = operand(), sum = operand();
  const Operand y = in_place == InPlace::no ? operand() : adds ? sum : x;
  const Slice inverse = sketch_.buffer(inverse_type(), rows);
  Norm op{.rows = rows,
          .columns = columns,
          .x = x.matrix,
          .y = y.matrix,
          .inverse = inverse,
          .epsilon = epsilon};
  if (adds) {
    op.addend = addend.matrix;
    op.sum = sum.matrix;
  }
  sketch_.emit(op);
  play();
  const auto got = result(y), sums = result(sum);
  const Values inverses = read_as_doubles(*session_, inverse, inverse_type());
  for (std::uint32_t row = 0; row < rows; ++row) {
    Values expected = x.rows[row];
    double squares = 0;
    for (std::uint32_t i = 0; i < columns; ++i) {
      // A sum is normed as it is stored.
      if (adds) expected[i] = rounded_to(type_, expected[i] + addend.rows[row][i]);
      squares += expected[i] * expected[i];
    }
    if (adds && in_place == InPlace::no) expect_near(sums[row], expected, tolerance());
    expect_near(got[row], norm_row(expected, epsilon), tolerance());
    EXPECT_NEAR(inverses[row], 1 / std::sqrt(squares / columns + epsilon),
                tolerance_of(inverse_type()));
  }
  if (in_place == InPlace::no) expect_gaps(y);
}

void LayerOps::norm_gradient(bool adds) {
  constexpr double epsilon = 0.25;
  const Operand s = operand(), dy = operand(), addend = operand(), y = operand(), dx = operand();
  const Slice inverse = sketch_.buffer(inverse_type(), rows);
  sketch_.emit(Norm{.rows = rows,
                    .columns = columns,
                    .x = s.matrix,
                    .y = y.matrix,
                    .inverse = inverse,
                    .epsilon = epsilon});
  NormGradient op{.rows = rows,
                  .columns = columns,
                  .dy = dy.matrix,
                  .s = s.matrix,
                  .dx = dx.matrix,
                  .inverse = inverse};
  if (adds) op.addend = addend.matrix;
  sketch_.emit(op);
  op.dx = dy.matrix;  // in place: the same once more
  sketch_.emit(op);
  play();
  const auto apart = result(dx);
  EXPECT_EQ(result(dy), apart);
  for (std::uint32_t row = 0; row < rows; ++row) {
    Values expected = differences([](const Values& x) { return norm_row(x, epsilon); }, s.rows[row],
                                  dy.rows[row]);
    for (std::uint32_t i = 0; adds && i < columns; ++i) expected[i] += addend.rows[row][i];
    expect_near(apart[row], expected, tolerance() + difference_error);
  }
}

void LayerOps::activation(ActivationKind kind, InPlace in_place) {
  const bool gated = kind == ActivationKind::swiglu;
  const Operand x = operand(), up = operand();
  const Operand y = in_place == InPlace::yes ? x : operand();
  Activation op{.kind = kind, .rows = rows, .columns = columns, .x = x.matrix, .y = y.matrix};
  if (gated) op.up = up.matrix;
  sketch_.emit(op);
  play();
  const auto got = result(y);
  for (std::uint32_t row = 0; row < rows; ++row) {
    Values expected;
    for (std::uint32_t i = 0; i < columns; ++i) {
      const double at = x.rows[row][i];
      expected.push_back(gated ? swiglu(at, up.rows[row][i]) : gelu(at));
    }
    expect_near(got[row], expected, tolerance());
  }
  expect_gaps(y);
}

void LayerOps::activation_gradient(ActivationKind kind, InPlace in_place) {
  const bool gated = kind == ActivationKind::swiglu, onto = in_place == InPlace::yes;
  const Operand dy = operand(), x = operand(), up = operand();
  const Operand dx = onto ? (gated ? x : dy) : operand(), dup = onto ? up : operand();
  ActivationGradient op{.kind = kind,
                        .rows = rows,
                        .columns = columns,
                        .dy = dy.matrix,
                        .x = x.matrix,
                        .dx = dx.matrix};
  if (gated) {
    op.up = up.matrix;
    op.dup = dup.matrix;
  }
  sketch_.emit(op);
  play();
  const auto dxs = result(dx), dups = result(dup);
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t i = 0; i < columns; ++i) {
      const double at = x.rows[row][i], ups = up.rows[row][i], from = dy.rows[row][i];
      const auto by_x = [&](const Values& v) {
        return Values{gated ? swiglu(v[0], ups) : gelu(v[0])};
      };
      const double allowed = tolerance() + difference_error;
      expect_near({dxs[row][i]}, differences(by_x, {at}, {from}), allowed);
      if (!gated) continue;
      const auto by_up = [&](const Values& v) { return Values{swiglu(at, v[0])}; };
      expect_near({dups[row][i]}, differences(by_up, {ups}, {from}), allowed);
    }
  }
}

constexpr std::uint32_t softmax_batch = 3;

Softmax softmax_op(const Operand& x, const Operand& y) {
  return {.rows = rows, .columns = columns, .batch = softmax_batch, .x = x.matrix, .y = y.matrix};
}

void LayerOps::softmax(InPlace in_place) {
  const Operand x = operand(softmax_batch);
  const Operand y = in_place == InPlace::yes ? x : operand(softmax_batch);
  sketch_.emit(softmax_op(x, y));
  play();
  const auto got = result(y);
  for (std::size_t row = 0; row < got.size(); ++row) {
    expect_near(got[row], softmax_row(x.rows[row]), tolerance());
  }
  expect_gaps(y);
}

void LayerOps::softmax_gradient(InPlace in_place) {
  const Operand x = operand(softmax_batch), dy = operand(softmax_batch);
  const Operand y = operand(softmax_batch);
  const Operand dx = in_place == InPlace::yes ? dy : operand(softmax_batch);
  sketch_.emit(softmax_op(x, y));
  sketch_.emit(SoftmaxGradient{.rows = rows,
                               .columns = columns,
                               .batch = softmax_batch,
                               .y = y.matrix,
                               .dy = dy.matrix,
                               .dx = dx.matrix});
  play();
  const auto got = result(dx);
  for (std::size_t row = 0; row < got.size(); ++row) {
    expect_near(got[row], differences(softmax_row, x.rows[row], dy.rows[row]),
                tolerance() + difference_error);
  }
}

TEST_P(LayerOps, AreWhatTheirDefinitionsGive) {
  for (const DType type : GetParam().floats) {
    SCOPED_TRACE(program::name(type));
    type_ = type;
    for (const bool adds : {false, true}) {
      norm(InPlace::no, adds);
      norm(InPlace::yes, adds);
      norm_gradient(adds);
    }
    for (const InPlace in_place : {InPlace::no, InPlace::yes}) {
      for (const ActivationKind kind : {ActivationKind::gelu, ActivationKind::swiglu}) {
        activation(kind, in_place);
        activation_gradient(kind, in_place);
      }
      softmax(in_place);
      softmax_gradient(in_place);
    }
  }
}

TEST_P(LayerOps, LargeScoresDoNotOverflow) {
  Sketch sketch;
  const Matrix row = sketch.matrix<float>(1, 3);
  sketch.emit(Softmax{.rows = 1, .columns = 3, .x = row, .y = row});
  const auto got =
      get<float>(*played(sketch, with<float>(row.slice, {1000, 999, -1e30F})), row.slice);
  const double e = std::exp(1.0);
  EXPECT_NEAR(double{got[0]}, e / (e + 1), 1e-6);
  EXPECT_NEAR(double{got[1]}, 1 / (e + 1), 1e-6);
  EXPECT_EQ(got[2], 0);
}

TEST_P(LayerOps, LongRowsAndManyOfThem) {
  // More columns than a block has threads, more rows than a device has blocks for.
  constexpr std::uint32_t wide = 1'000, many = 3'000;
  Sketch sketch;
  const Matrix x = sketch.matrix<double>(many, wide), y = sketch.matrix<double>(many, wide);
  const Slice inverse = sketch.buffer<double>(many);
  sketch.emit(
      Norm{.rows = many, .columns = wide, .x = x, .y = y, .inverse = inverse, .epsilon = 0});
  const auto values = random_values<double>(x.slice.count, 1);
  const auto got = get<double>(*played(sketch, with(x.slice, values)), y.slice);
  for (const std::size_t row : {0U, 1U, 2'111U, 2'999U}) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * wide);
    const Values expected = norm_row(Values(begin, begin + wide), 0);
    for (const std::size_t i : {0U, 1U, 255U, 256U, 999U}) {
      EXPECT_NEAR(got[row * wide + i], expected[i], 1e-13) << row << ", " << i;
    }
  }
}

TEST_P(LayerOps, RefuseOperandsThatDoNotGoTogether) {
  if (GetParam().name == "emulating") GTEST_SKIP() << "plays what it has widened";
  const auto refused = [&](DType type, DType other, std::uint64_t inverses, bool norms,
                           bool activates) {
    expect_refused([&](Sketch& sketch) {
      const Matrix x = Sketch::dense(sketch.buffer(type, rows * columns), columns);
      const Matrix y = Sketch::dense(sketch.buffer(other, rows * columns), columns);
      if (norms) {
        sketch.emit(Norm{.rows = rows,
                         .columns = columns,
                         .x = x,
                         .y = y,
                         .inverse = sketch.buffer(DType::f32, inverses)});
      } else if (activates) {  // swiglu of one operand
        sketch.emit(Activation{
            .kind = ActivationKind::swiglu, .rows = rows, .columns = columns, .x = x, .y = y});
      } else {
        sketch.emit(Softmax{.rows = rows, .columns = columns, .x = x, .y = y});
      }
    });
  };
  refused(DType::f32, DType::f64, 0, false, false);
  refused(DType::f64, DType::f64, rows, true, false);  // inverses in f32 beside f64
  refused(DType::f32, DType::f32, rows - 1, true, false);
  refused(DType::f32, DType::f32, 0, false, true);
  refused(DType::i32, DType::i32, 0, false, false);
  refused(DType::e4m3, DType::e4m3, 0, false, false);
}

INSTANTIATE_TEST_SUITE_P(Executors, LayerOps, every_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
