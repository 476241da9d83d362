# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# cmake -DPAGE=page.html -DOUTPUT=asset.cpp -P embed.cmake writes the page as a C++ string.
file(READ ${PAGE} page)
string(FIND "${page}" ")isoscale\"" ends)
if(NOT ends EQUAL -1)
  message(FATAL_ERROR "${PAGE} contains what ends a raw string of C++")
endif()
file(WRITE ${OUTPUT} "// Generated: see analysis/page/embed.cmake.
#include \"analysis/page/page.hpp\"

namespace isoscale::analysis::page {

std::optional<std::string_view> page_asset() {
  static constexpr char page[] = R\"isoscale(${page})isoscale\";
  return std::string_view{page, sizeof(page) - 1};
}

}  // namespace isoscale::analysis::page
")
