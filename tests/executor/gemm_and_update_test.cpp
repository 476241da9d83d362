// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Matrix products and updates of weights against f64 arithmetic.

#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using namespace program;  // NOLINT: the ops

/// Written so that a NaN fails.
MATCHER_P(IsNear, tolerance, "") {
  return std::abs(double{std::get<0>(arg)} - std::get<1>(arg)) <= tolerance;
}

/// The relation of C to D.
enum class Addend { none, distinct, same };

struct Case {
  std::uint32_t m, n, k, batch = 1;
  Transpose a = Transpose::no, b = Transpose::no;
  double alpha = 1, beta = 0;
  Addend addend = Addend::none;
  std::uint64_t padding = 0;  ///< elements after each row
  bool interleaved = false;   ///< [row][batch][column], as activations are
  bool shared_b = false;      ///< one B for the whole batch

  [[nodiscard]] std::string name() const {
    return fmt::format("{}x{}x{} batch {} {}{} alpha {} beta {} addend {} padding {}{}{}", m, n, k,
                       batch, a == Transpose::yes ? 'T' : 'N', b == Transpose::yes ? 'T' : 'N',
                       alpha, beta, static_cast<int>(addend), padding,
                       interleaved ? " interleaved" : "", shared_b ? " shared" : "");
  }
};

/// The matrices of a batch in a slice, and what it holds before.
template <class T>
struct Held {
  Held(Sketch& sketch, const Case& how, Transpose flips, std::uint64_t rows, std::uint64_t columns,
       bool is_shared, unsigned seed)
      : is_flipped(flips == Transpose::yes) {
    if (is_flipped) std::swap(rows, columns);
    const std::uint64_t padded = columns + how.padding;
    matrix.row_stride = how.interleaved && !is_shared ? how.batch * padded : padded;
    matrix.batch_stride = is_shared ? 0 : how.interleaved ? padded : rows * padded;
    matrix.slice = sketch.buffer<T>((is_shared ? 1 : how.batch) * rows * padded);
    values = random_values<T>(matrix.slice.count, seed);
  }
  [[nodiscard]] std::uint64_t at(std::uint64_t b, std::uint64_t row, std::uint64_t column) const {
    if (is_flipped) std::swap(row, column);
    return b * matrix.batch_stride + row * matrix.row_stride + column;
  }

  Matrix matrix;
  bool is_flipped;
  std::vector<T> values;
};

class Gemms : public EachExecutor {
 protected:
  /// Compares with the definition, in f64. Elements of D that are no matrix element stay.
  template <class T>
  void test(const Case& g) {
    SCOPED_TRACE(g.name() + " " + std::string{name(dtype_of<T>)});
    Sketch sketch;
    const Held<T> a{sketch, g, g.a, g.m, g.k, false, 1}, b{sketch, g, g.b, g.k, g.n, g.shared_b, 2};
    const Held<T> c{sketch, g, Transpose::no, g.m, g.n, false, 3};
    const Held<T> d{sketch, g, Transpose::no, g.m, g.n, false, 4};
    const Held<T>& addend = g.addend == Addend::same ? d : c;
    Gemm gemm{.m = g.m, .n = g.n, .k = g.k, .batch = g.batch, .alpha = g.alpha, .beta = g.beta};
    gemm.transpose_a = g.a;
    gemm.transpose_b = g.b;
    gemm.a = a.matrix;
    gemm.b = b.matrix;
    gemm.c = addend.matrix;
    gemm.d = d.matrix;
    sketch.emit(gemm);
    const auto session =
        played(sketch, with(a.matrix.slice, a.values), with(b.matrix.slice, b.values),
               with(c.matrix.slice, c.values), with(d.matrix.slice, d.values));
    std::vector<double> expected(d.values.begin(), d.values.end());
    for (std::uint64_t i = 0; i < std::uint64_t{g.batch} * g.m * g.n; ++i) {
      const std::uint64_t at = i / g.n / g.m, row = i / g.n % g.m, column = i % g.n;
      double sum = 0;
      for (std::uint64_t x = 0; x < g.k; ++x) {
        sum += double{a.values[a.at(at, row, x)]} * double{b.values[b.at(at, x, column)]};
      }
      const std::uint64_t here = d.at(at, row, column);
      expected[here] = g.alpha * sum + (g.beta == 0 ? 0 : g.beta * double{addend.values[here]});
    }
    const double tolerance = (4 + g.k) * double{std::numeric_limits<T>::epsilon()};
    EXPECT_THAT(get<T>(*session, d.matrix.slice), Pointwise(IsNear(tolerance), expected));
    EXPECT_EQ(get<T>(*session, c.matrix.slice), c.values) << "C was written";
  }

  void test_both(const Case& g) {
    test<float>(g);
    test<double>(g);
  }
};

TEST_P(Gemms, AllTransposesAndStrides) {
  for (const Transpose a : {Transpose::no, Transpose::yes}) {
    for (const Transpose b : {Transpose::no, Transpose::yes}) {
      for (const std::uint64_t padding : {0U, 3U}) {
        test_both({.m = 13, .n = 7, .k = 29, .a = a, .b = b, .padding = padding});
        Case batch{.m = 5, .n = 6, .k = 7, .batch = 4, .a = a, .b = b, .padding = padding};
        test_both(batch);
        batch.interleaved = true;
        test_both(batch);
      }
    }
  }
}

TEST_P(Gemms, AlphaAndBeta) {
  for (const double alpha : {1.0, 0.5, -2.0, 0.0}) {
    for (const double beta : {1.0, 0.5, -0.25}) {
      for (const Addend addend : {Addend::same, Addend::distinct}) {
        test_both({.m = 9, .n = 17, .k = 11, .alpha = alpha, .beta = beta, .addend = addend});
      }
    }
  }
}

TEST_P(Gemms, DistinctAddendOfEveryLayout) {
  Case of{.m = 6, .n = 10, .k = 8, .batch = 3, .alpha = 0.5, .beta = 0.5};
  of.addend = Addend::distinct;
  for (const bool interleaved : {false, true}) {
    for (const std::uint64_t padding : {0U, 5U}) {
      of.interleaved = interleaved;
      of.padding = padding;
      test_both(of);
    }
  }
}

TEST_P(Gemms, VectorsLargerOnesAndOneMatrixForTheWholeBatch) {
  test_both({.m = 4, .n = 9, .k = 6, .batch = 5, .shared_b = true});
  test_both({.m = 1, .n = 33, .k = 65});
  test_both({.m = 33, .n = 1, .k = 65});
  test_both({.m = 1, .n = 1, .k = 129});
  test_both({.m = 17, .n = 15, .k = 1});
  test_both({.m = 150, .n = 130, .k = 170});
}

TEST_P(Gemms, WithoutBetaTheOldValuesDoNotMatter) {
  Sketch sketch;
  const Matrix a = sketch.matrix<double>(2, 2), b = sketch.matrix<double>(2, 2);
  const Matrix d = sketch.matrix<double>(2, 2);
  sketch.emit(Gemm{.m = 2, .n = 2, .k = 2, .beta = 0, .a = a, .b = b, .c = d, .d = d});
  const auto session =
      played(sketch, with<double>(a.slice, {1, 2, 3, 4}), with<double>(b.slice, {5, 6, 7, 8}),
             with(d.slice, std::vector<double>(4, std::nan(""))));
  EXPECT_THAT(get<double>(*session, d.slice), ElementsAre(19, 22, 43, 50));
}

TEST_P(Gemms, MatrixOutsideOfItsSliceIsRefused) {
  expect_refused([](Sketch& sketch) {
    const Matrix a = Sketch::dense(sketch.buffer<double>(3), 2), b = sketch.matrix<double>(2, 2);
    sketch.emit(Gemm{.m = 2, .n = 2, .k = 2, .a = a, .b = b, .d = b});
  });
}

INSTANTIATE_TEST_SUITE_P(Executors, Gemms, each_backend(), name_of);

constexpr std::uint64_t count = 37;
constexpr int plays = 5;

class Updates : public EachExecutor {
 protected:
  /// After so many plays from these contents.
  template <class... Held>
  SessionPtr after_plays(const Sketch& sketch, const Held&... held) {
    auto session = played(sketch, held...);
    for (int i = 1; i < plays; ++i) session->play({.section = program::Section::step});
    return session;
  }
};

template <class T>
void expect_close(const std::vector<T>& got, const std::vector<double>& expected,
                  double tolerance) {
  EXPECT_THAT(got, Pointwise(IsNear(tolerance), expected));
}

/// Algorithm 1 of arXiv 1412.6980 with a gradient that stays, in f64.
template <class T>
std::vector<double> adam(const std::vector<T>& before, const std::vector<T>& gradient,
                         const Update& op) {
  std::vector<double> w(before.begin(), before.end());
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double g = double{gradient[i]} * op.gradient_scale;
    double m = 0, v = 0;
    for (int t = 1; t <= plays; ++t) {
      m = op.beta1 * m + (1 - op.beta1) * g;
      v = op.beta2 * v + (1 - op.beta2) * g * g;
      const double m_hat = m / (1 - std::pow(op.beta1, t));
      const double v_hat = v / (1 - std::pow(op.beta2, t));
      w[i] -= op.rate * m_hat / (std::sqrt(v_hat) + op.epsilon);
    }
  }
  return w;
}

TEST_P(Updates, Sgd) {
  Sketch sketch;
  const Slice weight = sketch.buffer<double>(count), gradient = sketch.buffer<double>(count);
  sketch.emit(Update{.weight = weight, .gradient = gradient, .gradient_scale = 0.25, .rate = 0.5});
  const auto w = random_values<double>(count, 1), g = random_values<double>(count, 2);
  const auto session = after_plays(sketch, with(weight, w), with(gradient, g));
  std::vector<double> expected = w;
  for (std::size_t i = 0; i < count; ++i) expected[i] -= plays * 0.125 * g[i];
  expect_close(get<double>(*session, weight), expected, 1e-14);
}

TEST_P(Updates, SgdOnAMasterRoundsIntoTheWeight) {
  Sketch sketch;
  const Slice weight = sketch.buffer<float>(1), master = sketch.buffer<double>(1);
  const Slice gradient = sketch.buffer<float>(1);
  sketch.emit(Update{.weight = weight, .master = master, .gradient = gradient, .rate = 1});
  if (!GetParam().mixes_wide_types) {
    EXPECT_THROW(std::ignore = prepare(sketch), base::Error);
    return;
  }
  // Each step is far below what an f32 weight of 1 can show; together they are not.
  const float tiny = std::ldexp(1.0F, -25);
  const auto session = after_plays(sketch, with<float>(weight, {1}), with<double>(master, {1}),
                                   with<float>(gradient, {-tiny}));
  EXPECT_THAT(get<double>(*session, master), ElementsAre(1 + plays * double{tiny}));
  EXPECT_THAT(get<float>(*session, weight), ElementsAre(1 + 4 * tiny));
}

template <class T>
Update adam_op(Sketch& sketch, const Slice& powers) {
  return {.optimizer = Optimizer::adam,
          .weight = sketch.buffer<T>(count),
          .gradient = sketch.buffer<T>(count),
          .moment1 = sketch.buffer<T>(count),
          .moment2 = sketch.buffer<T>(count),
          .powers = powers,
          .gradient_scale = 0.5,
          .rate = 0.1};
}

TEST_P(Updates, AdamInBothTypes) {
  const auto run = [&]<class T>(T /*type*/, double tolerance) {
    Sketch sketch;
    const Slice powers = sketch.buffer<T>(2);
    const Update op = adam_op<T>(sketch, powers);
    sketch.emit(op);
    const auto w = random_values<T>(count, 1), g = random_values<T>(count, 2);
    const auto session =
        after_plays(sketch, with(op.weight, w), with(op.gradient, g), with<T>(powers, {1, 1}));
    expect_close(get<T>(*session, op.weight), adam(w, g, op), tolerance);
    const auto left = get<T>(*session, powers);
    EXPECT_NEAR(static_cast<double>(left[0]), std::pow(0.9, plays), 1e-6);
    EXPECT_NEAR(static_cast<double>(left[1]), std::pow(0.999, plays), 1e-6);
  };
  // f32: 1 - 0.999^t loses ten bits, and the step is about rate large.
  run(float{}, 1e-4);
  run(double{}, 1e-12);
}

TEST_P(Updates, AdamWithAMasterAndPowersInF64) {
  Sketch sketch;
  const Slice powers = sketch.buffer<double>(2);
  Update op = adam_op<float>(sketch, powers);
  op.master = sketch.buffer<float>(count);
  sketch.emit(op);
  if (!GetParam().mixes_wide_types) {
    EXPECT_THROW(std::ignore = prepare(sketch), base::Error);
    return;
  }
  const auto w = random_values<float>(count, 3), g = random_values<float>(count, 4);
  const auto session =
      after_plays(sketch, with(op.master, w), with(op.gradient, g), with<double>(powers, {1, 1}));
  expect_close(get<float>(*session, op.master), adam(w, g, op), 1e-5);
  EXPECT_EQ(get<float>(*session, op.weight), get<float>(*session, op.master));
}

TEST_P(Updates, PowersThatTwoUpdatesShareAdvanceOncePerPlay) {
  Sketch sketch;
  const Slice powers = sketch.buffer<double>(2);
  const Update first = adam_op<double>(sketch, powers), second = adam_op<double>(sketch, powers);
  sketch.emit(first);
  sketch.emit(second);
  const auto w = random_values<double>(count, 5), g = random_values<double>(count, 6);
  const auto session =
      after_plays(sketch, with(first.weight, w), with(first.gradient, g), with(second.weight, w),
                  with(second.gradient, g), with<double>(powers, {1, 1}));
  const auto expected = adam(w, g, first);
  expect_close(get<double>(*session, first.weight), expected, 1e-12);
  expect_close(get<double>(*session, second.weight), expected, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Executors, Updates, each_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
