// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include <toml++/toml.h>

#include "workloads/model.hpp"

namespace isoscale::workloads {

/// A model from a parsed table; `origin` names the file in errors. See parse_model().
[[nodiscard]] Model read_model(const toml::table& table, std::string_view origin);

/// The keys of a model with their values, one a line; parse_model() gives the same model back.
[[nodiscard]] std::string to_toml(const Model& model);

}  // namespace isoscale::workloads
