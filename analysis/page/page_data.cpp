// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page_data.hpp"

#include <nlohmann/json.hpp>

#include "analysis/render/render_json.hpp"
#include "base/build_info.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json page_data(const Report& report) {
  return {{"kind", "report"},
          {"isoscale_version", base::build_info().version},
          {"report", report_json(report)},
          {"notes", Json::array()}};
}

}  // namespace isoscale::analysis
