// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>

#include "analysis/output_file.hpp"
#include "analysis/page/asset.hpp"
#include "analysis/page/inert.hpp"
#include "analysis/page/page_data.hpp"
#include "base/error.hpp"

namespace isoscale::analysis {
namespace {

/// Where the data goes; the page's own text has this once.
constexpr std::string_view place = "{\"isoscale\":\"data\"}";

}  // namespace

void require_page() {
  if (page_asset()) return;
  throw base::UsageError(
      "--html: this build has no page to write. It was built without npm, or where npm could reach "
      "no registry; install npm and build again, build from a release's tarball, or give CMake the "
      "page of another build: -DISOSCALE_PAGE=.../page.html. All other formats work without");
}

std::string page_document(const nlohmann::ordered_json& data) {
  require_page();
  const std::string_view page = *page_asset();
  const std::size_t at = page.find(place);
  if (at == std::string_view::npos) throw base::Error("the embedded page has no place for data");
  std::string document{page.substr(0, at)};
  document += inert(data);
  document += page.substr(at + place.size());
  return document;
}

void write_page_file(const Report& report, const std::filesystem::path& path,
                     config::IfExists if_exists) {
  const std::string document = page_document(page_data(report));
  write_output_file("--html", path, if_exists, [&](std::ostream& out) { out << document; });
}

}  // namespace isoscale::analysis
