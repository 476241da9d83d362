// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/compare_page.hpp"

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>

#include "analysis/compare/compare_render.hpp"
#include "analysis/output_file.hpp"
#include "analysis/page/page.hpp"
#include "analysis/page/prune.hpp"
#include "base/build_info.hpp"

namespace isoscale::analysis {

using Json = nlohmann::ordered_json;

Json compare_page_data(const Comparison& comparison) {
  PageNotes notes;
  Json compared = compare_json(comparison);
  cut_texts(compared, notes);
  return {{"kind", "compare"},
          {"isoscale_version", base::build_info().version},
          {"compare", std::move(compared)},
          {"notes", notes}};
}

void write_compare_page_file(const Comparison& comparison, const std::filesystem::path& path,
                             config::IfExists if_exists) {
  const std::string document = page_document(compare_page_data(comparison));
  write_output_file("--html", path, if_exists, [&](std::ostream& out) { out << document; });
}

}  // namespace isoscale::analysis
