# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# Sets isoscale_page_source, the source file that embeds the page of report --html. The build makes
# the page from web/ with npm; a release's tarball contains it, and the page of another build can be
# given. Without a page the program works, except that report --html reports that there is none.
set(ISOSCALE_PAGE AUTO CACHE STRING
  "The page of report --html: AUTO bundles it where npm is, ON insists, OFF leaves it out, or a page.html of another build")

set(page_web ${CMAKE_CURRENT_LIST_DIR}/web)
set(page_build ${PROJECT_BINARY_DIR}/page)
set(page_bundled ${CMAKE_CURRENT_LIST_DIR}/page.html)  # in a tarball
set(page_html "")

set(isoscale_page_source ${page_build}/asset.cpp)
if(ISOSCALE_PAGE STREQUAL "OFF")
  set(isoscale_page_source ${CMAKE_CURRENT_LIST_DIR}/page_asset_absent.cpp)
elseif(NOT ISOSCALE_PAGE STREQUAL "AUTO" AND NOT ISOSCALE_PAGE STREQUAL "ON")
  if(NOT EXISTS ${ISOSCALE_PAGE})
    message(FATAL_ERROR "ISOSCALE_PAGE: there is no file ${ISOSCALE_PAGE}")
  endif()
  set(page_html ${ISOSCALE_PAGE})
elseif(EXISTS ${page_bundled})
  set(page_html ${page_bundled})
endif()

if(ISOSCALE_PAGE STREQUAL "OFF")
  message(STATUS "Page of report --html: not built (ISOSCALE_PAGE is off)")
elseif(page_html)
  message(STATUS "Page of report --html: ${page_html}")
  add_custom_command(OUTPUT ${isoscale_page_source}
    COMMAND ${CMAKE_COMMAND} -DPAGE=${page_html} -DOUTPUT=${isoscale_page_source}
      -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
    DEPENDS ${page_html} ${CMAKE_CURRENT_LIST_DIR}/embed.cmake COMMENT "Embedding the page" VERBATIM)
else()
  message(STATUS "Page of report --html: bundled with npm while Isoscale is built")
  set(page_required OFF)
  if(ISOSCALE_PAGE STREQUAL "ON")
    set(page_required ON)
  endif()
  if(EXISTS ${page_build}/missing)
    file(REMOVE ${isoscale_page_source})  # so that the build tries again
  endif()
  file(GLOB page_sources CONFIGURE_DEPENDS ${page_web}/*.mjs ${page_web}/src/* ${page_web}/src/sections/*)
  add_custom_command(OUTPUT ${isoscale_page_source}
    COMMAND ${CMAKE_COMMAND} -DWEB=${page_web} -DBUILD=${page_build} -DOUTPUT=${isoscale_page_source}
      -DABSENT=${CMAKE_CURRENT_LIST_DIR}/page_asset_absent.cpp -DREQUIRED=${page_required}
      -P ${CMAKE_CURRENT_LIST_DIR}/make_page.cmake
    DEPENDS ${page_sources} ${page_web}/package-lock.json ${CMAKE_CURRENT_LIST_DIR}/make_page.cmake
      ${CMAKE_CURRENT_LIST_DIR}/embed.cmake ${CMAKE_CURRENT_LIST_DIR}/page_asset_absent.cpp
    COMMENT "Bundling the page" VERBATIM)
endif()
