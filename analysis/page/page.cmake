# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# isoscale_page_source: what embeds the page that report --html fills. It is bundled from web/ with
# npm; a release's tarball brings it along, and any other build's can be given. Without one the
# program says so when it is asked for a page, and all else works.
set(ISOSCALE_PAGE AUTO CACHE STRING
  "The page of report --html: AUTO bundles it where npm is, OFF leaves it out, or a page.html of another build")

set(page_web ${CMAKE_CURRENT_LIST_DIR}/web)
set(page_build ${PROJECT_BINARY_DIR}/page)
set(page_bundled ${CMAKE_CURRENT_LIST_DIR}/page.html)  # of a tarball
set(page_html "")

# Fetches what web/package-lock.json names; "" or why that failed.
function(isoscale_fetch_page_packages npm result)
  file(SHA256 ${page_web}/package-lock.json wanted)
  set(stamp ${page_build}/fetched)
  if(EXISTS ${stamp})
    file(READ ${stamp} fetched)
    if(fetched STREQUAL wanted)
      set(${result} "" PARENT_SCOPE)
      return()
    endif()
  endif()
  file(COPY ${page_web}/package.json ${page_web}/package-lock.json ${page_web}/.npmrc
    DESTINATION ${page_build})
  message(STATUS "Page of report --html: npm fetches what it is made of ...")
  execute_process(COMMAND ${npm} ci --ignore-scripts WORKING_DIRECTORY ${page_build}
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said TIMEOUT 180)
  if(failed)
    file(WRITE ${page_build}/npm.log "${said}")
    set(${result} "npm could not fetch its packages: see ${page_build}/npm.log" PARENT_SCOPE)
    return()
  endif()
  file(WRITE ${stamp} "${wanted}")
  set(${result} "" PARENT_SCOPE)
endfunction()

if(ISOSCALE_PAGE STREQUAL "OFF")
  set(page_missing "ISOSCALE_PAGE is off")
elseif(NOT ISOSCALE_PAGE STREQUAL "AUTO" AND NOT ISOSCALE_PAGE STREQUAL "ON")
  if(NOT EXISTS ${ISOSCALE_PAGE})
    message(FATAL_ERROR "ISOSCALE_PAGE: there is no file ${ISOSCALE_PAGE}")
  endif()
  set(page_html ${ISOSCALE_PAGE})
elseif(EXISTS ${page_bundled})
  set(page_html ${page_bundled})
else()
  find_program(ISOSCALE_NPM npm)
  find_program(ISOSCALE_NODE NAMES node nodejs)
  mark_as_advanced(ISOSCALE_NPM ISOSCALE_NODE)
  if(ISOSCALE_NPM AND ISOSCALE_NODE)
    isoscale_fetch_page_packages(${ISOSCALE_NPM} page_missing)
  else()
    set(page_missing "there is no npm")
  endif()
  if(page_missing STREQUAL "")
    set(page_html ${page_build}/page.html)
    file(GLOB page_sources CONFIGURE_DEPENDS ${page_web}/*.mjs ${page_web}/src/* ${page_web}/src/sections/*)
    add_custom_command(OUTPUT ${page_html}
      COMMAND ${ISOSCALE_NODE} ${page_web}/bundle.mjs ${page_build} ${page_html}
      DEPENDS ${page_sources} ${page_web}/package-lock.json COMMENT "Bundling the page" VERBATIM)
  endif()
endif()

if(page_html)
  message(STATUS "Page of report --html: ${page_html}")
  set(isoscale_page_source ${page_build}/asset.cpp)
  add_custom_command(OUTPUT ${isoscale_page_source}
    COMMAND ${CMAKE_COMMAND} -DPAGE=${page_html} -DOUTPUT=${isoscale_page_source}
      -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
    DEPENDS ${page_html} ${CMAKE_CURRENT_LIST_DIR}/embed.cmake COMMENT "Embedding the page" VERBATIM)
elseif(ISOSCALE_PAGE STREQUAL "ON")
  message(FATAL_ERROR "ISOSCALE_PAGE=ON, but ${page_missing}")
else()
  message(STATUS "Page of report --html: not built (${page_missing})")
  set(isoscale_page_source ${CMAKE_CURRENT_LIST_DIR}/asset_absent.cpp)
endif()
