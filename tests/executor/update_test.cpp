// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <cmath>
#include <tuple>

#include "base/error.hpp"
#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using program::Optimizer;
using program::Slice;
using program::Update;

constexpr std::uint64_t count = 37;
constexpr int plays = 5;

class Updates : public EachExecutor {
 protected:
  /// After so many plays from these contents.
  template <class... Held>
  std::unique_ptr<Session> after_plays(const Sketch& sketch, const Held&... held) {
    auto session = played(sketch, held...);
    for (int i = 1; i < plays; ++i) session->play(program::Section::step, Trace::off);
    return session;
  }
};

template <class T>
void expect_close(const std::vector<T>& got, const std::vector<double>& expected,
                  double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(got[i]), expected[i], tolerance) << "element " << i;
  }
}

/// Algorithm 1 of arXiv 1412.6980 with a gradient that stays, in f64.
std::vector<double> adam(std::vector<double> w, const std::vector<double>& gradient,
                         const Update& op) {
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double g = gradient[i] * op.gradient_scale;
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

template <class T>
std::vector<double> widened(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

TEST_P(Updates, Sgd) {
  Sketch sketch;
  const Slice weight = sketch.buffer<double>(count), gradient = sketch.buffer<double>(count);
  sketch.emit(Update{.optimizer = Optimizer::sgd,
                     .weight = weight,
                     .gradient = gradient,
                     .gradient_scale = 0.25,
                     .rate = 0.5});
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
  sketch.emit(Update{.optimizer = Optimizer::sgd,
                     .weight = weight,
                     .master = master,
                     .gradient = gradient,
                     .rate = 1});
  if (!GetParam().mixes_wide_types) {
    EXPECT_THROW(std::ignore = prepare(sketch), base::Error);
    return;
  }
  // Each step is far below what an f32 weight of 1 can show; together they are not.
  const float tiny = std::ldexp(1.0F, -25);
  const auto session = after_plays(sketch, with<float>(weight, {1}), with<double>(master, {1}),
                                   with<float>(gradient, {-tiny}));
  EXPECT_THAT(get<double>(*session, master), testing::ElementsAre(1 + plays * double{tiny}));
  EXPECT_THAT(get<float>(*session, weight), testing::ElementsAre(1 + 4 * tiny));
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
    expect_close(get<T>(*session, op.weight), adam(widened(w), widened(g), op), tolerance);
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
  expect_close(get<float>(*session, op.master), adam(widened(w), widened(g), op), 1e-5);
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
