"""Makes the files beside it: `make.py FOLDER`, with h5py 3.14 and netCDF4 1.7."""

import sys

import h5py
import netCDF4
import numpy

folder = sys.argv[1]

with netCDF4.Dataset(f"{folder}/ocean.nc", "w", format="NETCDF4") as it:
    it.title = "Sea surface <temperature>"
    it.geospatial_lon_min = numpy.float32(343.68)
    it.geospatial_lon_max = numpy.float32(353.78)
    it.geospatial_lat_min = numpy.float32(41.8)
    it.geospatial_lat_max = numpy.float32(49.62)
    it.createDimension("time", None)
    it.createDimension("station", 3)
    time = it.createVariable("time", "f8", ("time",))
    time.units = "days since 1662-10-01"
    sst = it.createVariable("sst", "i2", ("time", "station"), fill_value=-99)
    sst.scale_factor = 0.01
    sst.valid_range = numpy.array([-500, 4000], dtype="i2")
    name = it.createVariable("name", str, ("station",))
    name.long_name = "Name"
    deep = it.createGroup("deep")
    deep.createDimension("level", 2)
    deep.createVariable("pressure", "u4", ("level",)).units = "dbar"
    time[:] = [1, 2]

with netCDF4.Dataset(f"{folder}/classic.nc", "w", format="NETCDF3_64BIT_OFFSET") as it:
    it.title = "Classic"
    it.createDimension("x", 2)
    it.createDimension("t", None)
    it.createVariable("v", "f4", ("t", "x")).flags = numpy.array([1, 2], dtype="i1")

# HDF5 as instruments write it: nothing of NetCDF in it.
with h5py.File(f"{folder}/scan.h5", "w", libver="earliest") as it:
    entry = it.create_group("entry")
    entry.attrs["NX_class"] = "NXentry"
    entry.attrs["started"] = numpy.bytes_("2026-01-31")
    texts = h5py.string_dtype()
    entry.create_dataset("notes", data=["Parting", "is such", "sweet"], dtype=texts)
    counts = entry.create_dataset("data/counts", data=numpy.zeros((2, 3), dtype="u2"), chunks=(1, 3), compression="gzip")
    counts.attrs["units"] = "1"
    entry["again"] = entry["data/counts"]
    entry["soft"] = h5py.SoftLink("/entry/notes")

# A group that lies within itself.
with h5py.File(f"{folder}/circle.h5", "w", libver="earliest") as it:
    it["again"] = it["/"]
