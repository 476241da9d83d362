// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using program::Gemm;
using program::Matrix;
using program::Slice;
using program::Transpose;

/// How C relates to D.
enum class Addend { none, distinct, same };

struct Case {
  std::uint32_t m, n, k, batch = 1;
  Transpose a = Transpose::no, b = Transpose::no;
  double alpha = 1, beta = 0;
  Addend addend = Addend::none;
  std::uint64_t padding = 0;  ///< elements after each row
  bool interleaved = false;   ///< [row][batch][column], as activations are
  bool shared_b = false;      ///< one B for the whole batch

  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << fmt::format("{}x{}x{} batch {} {}{} alpha {} beta {} addend {} padding {}{}{}",
                              c.m, c.n, c.k, c.batch, c.a == Transpose::yes ? 'T' : 'N',
                              c.b == Transpose::yes ? 'T' : 'N', c.alpha, c.beta,
                              static_cast<int>(c.addend), c.padding,
                              c.interleaved ? " interleaved" : "", c.shared_b ? " shared" : "");
  }
};

/// Where element (row, column) of matrix `batch` lies in a slice.
struct Layout {
  std::uint64_t rows, columns, row_stride, batch_stride, count;

  Layout(std::uint64_t r, std::uint64_t c, std::uint64_t batch, const Case& how,
         bool shared = false)
      : rows(r), columns(c) {
    const std::uint64_t padded = columns + how.padding;
    row_stride = how.interleaved && !shared ? batch * padded : padded;
    batch_stride = shared ? 0 : how.interleaved ? padded : rows * padded;
    count = (shared ? 1 : batch) * rows * padded;
  }
  [[nodiscard]] std::uint64_t at(std::uint64_t b, std::uint64_t r, std::uint64_t c) const {
    return b * batch_stride + r * row_stride + c;
  }
  [[nodiscard]] Matrix in(const Slice& slice) const {
    return {.slice = slice, .row_stride = row_stride, .batch_stride = batch_stride};
  }
};

/// D by the definition, in f64. Elements of D that are no matrix element stay.
template <class T>
std::vector<T> multiply(const Case& g, const Layout& la, const std::vector<T>& a, const Layout& lb,
                        const std::vector<T>& b, const Layout& ld, const std::vector<T>& c,
                        std::vector<T> d) {
  for (std::uint64_t i = 0; i < g.batch; ++i) {
    for (std::uint64_t row = 0; row < g.m; ++row) {
      for (std::uint64_t column = 0; column < g.n; ++column) {
        double sum = 0;
        for (std::uint64_t x = 0; x < g.k; ++x) {
          const T left = g.a == Transpose::yes ? a[la.at(i, x, row)] : a[la.at(i, row, x)];
          const T right = g.b == Transpose::yes ? b[lb.at(i, column, x)] : b[lb.at(i, x, column)];
          sum += static_cast<double>(left) * static_cast<double>(right);
        }
        const std::uint64_t here = ld.at(i, row, column);
        const double old = g.beta == 0 ? 0 : g.beta * static_cast<double>(c[here]);
        d[here] = static_cast<T>(g.alpha * sum + old);
      }
    }
  }
  return d;
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<T>& expected, double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto difference =
        std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i]));
    // Written so that a NaN fails.
    if (!(difference <= tolerance)) {
      ADD_FAILURE() << "element " << i << " is " << got[i] << ", not " << expected[i];
      return;
    }
  }
}

class Gemms : public EachExecutor {
 protected:
  template <class T>
  void test(const Case& g) {
    SCOPED_TRACE(testing::PrintToString(g) + " " + std::string{name(dtype_of<T>)});
    const Layout la =
        g.a == Transpose::yes ? Layout{g.k, g.m, g.batch, g} : Layout{g.m, g.k, g.batch, g};
    const Layout lb = g.b == Transpose::yes ? Layout{g.n, g.k, g.batch, g, g.shared_b}
                                            : Layout{g.k, g.n, g.batch, g, g.shared_b};
    const Layout ld{g.m, g.n, g.batch, g};
    Sketch sketch;
    const Slice a = sketch.buffer<T>(la.count), b = sketch.buffer<T>(lb.count);
    const Slice c = sketch.buffer<T>(ld.count), d = sketch.buffer<T>(ld.count);
    sketch.emit(Gemm{.m = g.m,
                     .n = g.n,
                     .k = g.k,
                     .batch = g.batch,
                     .transpose_a = g.a,
                     .transpose_b = g.b,
                     .alpha = g.alpha,
                     .beta = g.beta,
                     .a = la.in(a),
                     .b = lb.in(b),
                     .c = ld.in(g.addend == Addend::same ? d : c),
                     .d = ld.in(d)});
    const auto va = random_values<T>(la.count, 1), vb = random_values<T>(lb.count, 2);
    const auto vc = random_values<T>(ld.count, 3), vd = random_values<T>(ld.count, 4);
    const auto session = played(sketch, with(a, va), with(b, vb), with(c, vc), with(d, vd));
    const auto expected = multiply(g, la, va, lb, vb, ld, g.addend == Addend::same ? vd : vc, vd);
    const double unit = std::numeric_limits<T>::epsilon();
    expect_near(get<T>(*session, d), expected, (4 + g.k) * unit);
    EXPECT_EQ(get<T>(*session, c), vc) << "C was written";
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
  for (const bool interleaved : {false, true}) {
    for (const std::uint64_t padding : {0U, 5U}) {
      test_both({.m = 6,
                 .n = 10,
                 .k = 8,
                 .batch = 3,
                 .alpha = 0.5,
                 .beta = 0.5,
                 .addend = Addend::distinct,
                 .padding = padding,
                 .interleaved = interleaved});
    }
  }
}

TEST_P(Gemms, OneMatrixForTheWholeBatch) {
  test_both({.m = 4, .n = 9, .k = 6, .batch = 5, .shared_b = true});
}

TEST_P(Gemms, VectorsAndLargerOnes) {
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
  EXPECT_THAT(get<double>(*session, d.slice), testing::ElementsAre(19, 22, 43, 50));
}

TEST_P(Gemms, MatrixOutsideOfItsSliceIsRefused) {
  expect_refused([](Sketch& sketch) {
    const Matrix a = Sketch::dense(sketch.buffer<double>(3), 2), b = sketch.matrix<double>(2, 2);
    sketch.emit(Gemm{.m = 2, .n = 2, .k = 2, .a = a, .b = b, .d = b});
  });
}

INSTANTIATE_TEST_SUITE_P(Executors, Gemms, each_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
