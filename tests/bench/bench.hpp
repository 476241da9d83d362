// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

/// The benchmark programs share this code: it times A and B in turn, so that what the machine does
/// meanwhile hits both, and takes medians.
namespace isoscale::bench {

[[nodiscard]] inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[nodiscard]] inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

template <class Work>
[[nodiscard]] double time_of(const Work& work) {
  const double begin = seconds_now();
  work();
  return seconds_now() - begin;
}

struct Comparison {
  double a = 0, b = 0;  ///< median seconds
  double ratio = 0;     ///< median of the rounds' a / b
};

/// A and B, which return the seconds they took, in turn; the order is swapped every round.
template <class A, class B>
[[nodiscard]] Comparison compare(int rounds, const A& a, const B& b) {
  std::vector<double> of_a, of_b, ratios;
  for (int i = 0; i < rounds; ++i) {
    if (i % 2 == 0) of_a.push_back(a());
    of_b.push_back(b());
    if (i % 2 != 0) of_a.push_back(a());
    ratios.push_back(of_a.back() / of_b.back());
  }
  return {.a = median(of_a), .b = median(of_b), .ratio = median(ratios)};
}

/// A whole number from the command line, or a default.
[[nodiscard]] inline int argument(int argc, char** argv, int index, int otherwise) {
  return argc > index ? std::atoi(argv[index]) : otherwise;
}

}  // namespace isoscale::bench
