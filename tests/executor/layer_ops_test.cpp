// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Norms, activations and softmax against plain f64 loops; their gradients against differences.

#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using namespace program;  // NOLINT: the ops

using Values = std::vector<double>;

// These functions follow the definitions of the ops, for one row.

constexpr double epsilon = 0.25;

double inverse_of(const Values& s, double added = epsilon) {
  double squares = 0;
  for (const double value : s) squares += value * value;
  return 1 / std::sqrt(squares / static_cast<double>(s.size()) + added);
}

Values norm_row(Values s, double added = epsilon) {
  const double inverse = inverse_of(s, added);
  for (double& value : s) value *= inverse;
  return s;
}

/// gelu(x), or swiglu(x, up) where there are more operands than one.
double activated(double x, const double* up) {
  return up == nullptr ? 0.5 * x * std::erfc(-x / std::sqrt(2.0)) : *up * x / (1 + std::exp(-x));
}

Values softmax_row(Values x) {
  double sum = 0;
  for (double& value : x) {
    value = std::exp(value);
    sum += value;
  }
  for (double& value : x) value /= sum;
  return x;
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

constexpr std::uint32_t rows = 5, columns = 37, batch = 3;

/// Three more than a row needs between two: what must not be touched.
constexpr std::uint64_t stride = columns + 3;

/// Twice what rounding a value once loses, and a few roundings of what it is computed in.
double tolerance_of(DType type) {
  return type == DType::f64   ? 1e-14
         : type == DType::f32 ? 2e-6
                              : std::ldexp(1.0, type == DType::f16 ? -10 : -7);
}

/// A matrix of an op, and what it holds before.
struct Operand {
  Matrix matrix;
  Values before;

  [[nodiscard]] Values row(std::size_t row) const {
    const auto begin = before.begin() + static_cast<std::ptrdiff_t>(row * stride);
    return {begin, begin + columns};
  }
};

class LayerOps : public EachExecutor {
 protected:
  /// The next operand of the op that is tried, of random values.
  Operand operand(std::uint32_t matrices = 1) {
    const Slice slice = sketch_.buffer(type_, matrices * rows * stride);
    const auto seed = static_cast<unsigned>(operands_.size()) + 1;
    operands_.push_back({{.slice = slice, .row_stride = stride, .batch_stride = rows * stride},
                         all_rounded(type_, random_values<double>(slice.count, seed))});
    return operands_.back();
  }
  /// An op of these rows.
  template <class Op>
  static Op sized(Op op) {
    op.rows = rows;
    op.columns = columns;
    if constexpr (requires { op.batch; }) op.batch = batch;
    return op;
  }
  /// Plays the ops emitted so far, and begins a new sketch.
  void play() {
    session_ = prepare(sketch_);
    for (const Operand& one : operands_)
      put(*session_, one.matrix.slice, stored(type_, one.before));
    session_->play({.section = program::Section::step});
    sketch_ = {};
    operands_.clear();
  }
  /// Expects these rows, and that the elements between them keep their values.
  void expect_rows(const Operand& of, const std::function<Values(std::size_t)>& expected,
                   double allowed) {
    const Values got = read_as_doubles(*session_, of.matrix.slice, type_);
    Values row;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (i % stride == 0) row = expected(i / stride);
      if (i % stride < columns) {
        const double right = row.at(i % stride);
        EXPECT_NEAR(got[i], right, allowed * (1 + std::abs(right))) << "element " << i;
      } else {
        EXPECT_EQ(got[i], of.before[i]) << "element " << i;
      }
    }
  }
  [[nodiscard]] DType inverse_type() const { return type_ == DType::f64 ? type_ : DType::f32; }
  [[nodiscard]] double tolerance() const { return tolerance_of(type_); }
  [[nodiscard]] double near_differences() const { return tolerance() + difference_error; }

  void norm(bool in_place, bool adds);
  void norm_gradient(bool adds);
  void activation(bool gated, bool in_place);
  void activation_gradient(bool gated, bool in_place);
  void softmax(bool in_place);

  DType type_ = DType::f64;
  Sketch sketch_;
  std::vector<Operand> operands_;  ///< of the sketch
  SessionPtr session_;
};

void LayerOps::norm(bool in_place, bool adds) {
  const Operand x = operand(), addend = operand(), sum = operand();
  const Operand y = !in_place ? operand() : adds ? sum : x;
  const Slice inverse = sketch_.buffer(inverse_type(), rows);
  Norm op = sized(Norm{.x = x.matrix, .y = y.matrix, .inverse = inverse, .epsilon = epsilon});
  if (adds) op.addend = addend.matrix;
  if (adds) op.sum = sum.matrix;
  sketch_.emit(op);
  play();
  const auto summed = [&](std::size_t row) {  // a sum is normed as it is stored
    Values result = x.row(row);
    const Values more = addend.row(row);
    for (std::size_t i = 0; adds && i < columns; ++i) result[i] += more[i];
    return all_rounded(type_, result);
  };
  if (adds && !in_place) expect_rows(sum, summed, tolerance());
  expect_rows(
      y, [&](std::size_t row) { return norm_row(summed(row)); }, tolerance());
  const Values inverses = read_as_doubles(*session_, inverse, inverse_type());
  for (std::size_t row = 0; row < rows; ++row) {
    EXPECT_NEAR(inverses[row], inverse_of(summed(row)), tolerance_of(inverse_type()));
  }
}

void LayerOps::norm_gradient(bool adds) {
  const Operand s = operand(), dy = operand(), addend = operand(), y = operand(), dx = operand();
  const Slice inverse = sketch_.buffer(inverse_type(), rows);
  sketch_.emit(sized(Norm{.x = s.matrix, .y = y.matrix, .inverse = inverse, .epsilon = epsilon}));
  auto op = sized(
      program::NormGradient{.dy = dy.matrix, .s = s.matrix, .dx = dx.matrix, .inverse = inverse});
  if (adds) op.addend = addend.matrix;
  sketch_.emit(op);
  op.dx = dy.matrix;  // in place: the same once more
  sketch_.emit(op);
  play();
  const auto expected = [&](std::size_t row) {
    Values result =
        differences([](const Values& x) { return norm_row(x); }, s.row(row), dy.row(row));
    const Values more = addend.row(row);
    for (std::size_t i = 0; adds && i < columns; ++i) result[i] += more[i];
    return result;
  };
  for (const Operand& one : {dx, dy}) expect_rows(one, expected, near_differences());
  const Values apart = read_as_doubles(*session_, dx.matrix.slice, type_);
  const Values in_place = read_as_doubles(*session_, dy.matrix.slice, type_);
  for (std::size_t i = 0; i < apart.size(); ++i) {
    if (i % stride < columns) {
      EXPECT_EQ(in_place[i], apart[i]) << "element " << i;
    }
  }
}

void LayerOps::activation(bool gated, bool in_place) {
  const Operand x = operand(), up = operand(), y = in_place ? x : operand();
  auto op = sized(program::Activation{.x = x.matrix, .y = y.matrix});
  op.kind = gated ? ActivationKind::swiglu : ActivationKind::gelu;
  if (gated) op.up = up.matrix;
  sketch_.emit(op);
  play();
  const auto expected = [&](std::size_t row) {
    Values result = x.row(row);
    const Values ups = up.row(row);
    for (std::size_t i = 0; i < columns; ++i) {
      result[i] = activated(result[i], gated ? &ups[i] : nullptr);
    }
    return result;
  };
  expect_rows(y, expected, tolerance());
}

void LayerOps::activation_gradient(bool gated, bool in_place) {
  const Operand dy = operand(), x = operand(), up = operand();
  const Operand dx = in_place ? (gated ? x : dy) : operand(), dup = in_place ? up : operand();
  auto op = sized(ActivationGradient{.dy = dy.matrix, .x = x.matrix, .dx = dx.matrix});
  op.kind = gated ? ActivationKind::swiglu : ActivationKind::gelu;
  if (gated) op.up = up.matrix;
  if (gated) op.dup = dup.matrix;
  sketch_.emit(op);
  play();
  /// Element by element, by x or by up.
  const auto gradient = [&](std::size_t row, bool by_up) {
    const Values xs = x.row(row), ups = up.row(row), from = dy.row(row);
    Values result;
    for (std::size_t i = 0; i < columns; ++i) {
      const auto of = [&](const Values& v) {
        const double* const other = by_up ? &v[0] : &ups[i];
        return Values{activated(by_up ? xs[i] : v[0], gated ? other : nullptr)};
      };
      result.push_back(differences(of, {by_up ? ups[i] : xs[i]}, {from[i]})[0]);
    }
    return result;
  };
  expect_rows(
      dx, [&](std::size_t row) { return gradient(row, false); }, near_differences());
  if (gated)
    expect_rows(
        dup, [&](auto row) { return gradient(row, true); }, near_differences());
}

void LayerOps::softmax(bool in_place) {
  const Operand x = operand(batch), dy = operand(batch), y = in_place ? x : operand(batch);
  const Operand dx = in_place ? dy : operand(batch);
  sketch_.emit(sized(Softmax{.x = x.matrix, .y = y.matrix}));
  sketch_.emit(sized(program::SoftmaxGradient{.y = y.matrix, .dy = dy.matrix, .dx = dx.matrix}));
  play();
  expect_rows(
      y, [&](std::size_t row) { return softmax_row(x.row(row)); }, tolerance());
  expect_rows(
      dx, [&](std::size_t row) { return differences(softmax_row, x.row(row), dy.row(row)); },
      near_differences());
}

TEST_P(LayerOps, AreWhatTheirDefinitionsGive) {
  for (const DType type : GetParam().floats) {
    SCOPED_TRACE(program::name(type));
    type_ = type;
    for (const bool one : {false, true}) {
      norm_gradient(one);
      softmax(one);
      for (const bool other : {false, true}) {
        norm(one, other);
        activation(one, other);
        activation_gradient(one, other);
      }
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
    const Values expected = norm_row({begin, begin + wide}, 0);
    for (const std::size_t i : {0U, 1U, 255U, 256U, 999U}) {
      EXPECT_NEAR(got[row * wide + i], expected[i], 1e-13) << row << ", " << i;
    }
  }
}

TEST_P(LayerOps, RefuseOperandsThatDoNotGoTogether) {
  if (GetParam().name == "emulating") GTEST_SKIP() << "plays what it has widened";
  const auto refused = [&](DType type, DType other, const auto& op_of) {
    expect_refused([&](Sketch& sketch) {
      const Matrix x = Sketch::dense(sketch.buffer(type, rows * columns), columns);
      const Matrix y = Sketch::dense(sketch.buffer(other, rows * columns), columns);
      auto op = sized(op_of(sketch));
      op.x = x;
      op.y = y;
      if constexpr (requires { op.batch; }) op.batch = 1;
      sketch.emit(op);
    });
  };
  const auto softmax = [](Sketch&) { return Softmax{}; };
  const auto norm = [](std::uint64_t inverses) {
    return [=](Sketch& sketch) { return Norm{.inverse = sketch.buffer(DType::f32, inverses)}; };
  };
  refused(DType::f32, DType::f64, softmax);
  refused(DType::i32, DType::i32, softmax);
  refused(DType::e4m3, DType::e4m3, softmax);
  refused(DType::f64, DType::f64, norm(rows));  // inverses in f32 beside f64
  refused(DType::f32, DType::f32, norm(rows - 1));
  refused(DType::f32, DType::f32, [](Sketch&) {  // of one operand
    return program::Activation{.kind = ActivationKind::swiglu};
  });
}

INSTANTIATE_TEST_SUITE_P(Executors, LayerOps, every_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
