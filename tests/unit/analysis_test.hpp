// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bench_samples.hpp"
#include "refusal.hpp"
#include "report_samples.hpp"
#include "reported.hpp"
#include "run_samples.hpp"
#include "series.hpp"

/// The tests of the analysis and of its predictions include this header instead of the standard
/// library, GoogleTest and the samples, and find the names of these here.
namespace isoscale::analysis {

using mesh::Axis;
using mesh::AxisSet;
using samples::add_step;
using samples::alike;
using samples::Autoregressive;
using samples::Draw;
using samples::Script;
using samples::solo;
using samples::Spans;
using samples::step;
using samples::trace;
using samples::traced_point;
using testing::AnyOf;
using testing::DoubleEq;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAreArray;
using testing::Eq;
using testing::Field;
using testing::IsNan;
using testing::Optional;
using testing::Pair;
using testing::Pointwise;
using testing::UnorderedElementsAre;
using units::Nanoseconds;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace isoscale::analysis
