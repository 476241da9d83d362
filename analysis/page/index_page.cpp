// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/index_page.hpp"

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>

#include "analysis/output_file.hpp"
#include "analysis/page/page.hpp"
#include "analysis/page/prune.hpp"
#include "analysis/render/render_json.hpp"
#include "base/build_info.hpp"

namespace isoscale::analysis {

using Json = nlohmann::ordered_json;

Json index_page_data(const IndexReport& report) {
  PageNotes notes;
  Json index = index_report_json(report);
  cut_texts(index, notes);
  return {{"kind", "index"},
          {"isoscale_version", base::build_info().version},
          {"report", std::move(index)},
          {"notes", notes}};
}

void write_index_page_file(const IndexReport& report, const std::filesystem::path& path,
                           config::IfExists if_exists) {
  const std::string document = page_document(index_page_data(report));
  write_output_file("--html", path, if_exists, [&](std::ostream& out) { out << document; });
}

}  // namespace isoscale::analysis
