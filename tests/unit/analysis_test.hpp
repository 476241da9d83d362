// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>

#include "report_samples.hpp"
#include "reported.hpp"
#include "series.hpp"
#include "words.hpp"

/// The tests of the analysis and of its predictions include this header instead of the standard
/// library, GoogleTest and the samples, and find the names of these here.
namespace isoscale::analysis {

using mesh::Axis;
using mesh::AxisSet;
using namespace samples;  // NOLINT: they are written for these tests
using testing::DoubleNear;
using testing::Eq;
using testing::Field;
using units::Nanoseconds;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace isoscale::analysis
