# The libraries that Mixtape needs; scripts/bootstrap installs them on Debian.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(MIXTAPE_PACKAGES REQUIRED IMPORTED_TARGET jansson libzip zlib libcrypto libcurl libpng
                                                       libjpeg cairo)
# Debian names the library without MPI; elsewhere it has the only name.
pkg_search_module(MIXTAPE_HDF5 REQUIRED IMPORTED_TARGET hdf5-serial hdf5)

add_library(mixtape_dependencies INTERFACE)
target_link_libraries(mixtape_dependencies INTERFACE -Wl,--as-needed PkgConfig::MIXTAPE_PACKAGES
                                                     PkgConfig::MIXTAPE_HDF5
                                                     Threads::Threads ${CMAKE_DL_LIBS} m)
